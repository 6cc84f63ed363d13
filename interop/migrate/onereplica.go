package migrate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// One replica has nothing to shard, so that each stage of ZeRO is stage 0 there. Trainers accept any: a file keeps its
// stage, which holds once there are several replicas.

// setReplicas sets stage 0 for files whose plan has one replica, and keeps their own stage in ReplicasZero. Overrides
// of degrees change the number of replicas, also to several.
func setReplicas(s *Source, overrides []spec.Override) {
	isOne := isOneReplica(s, overrides)
	if !isOne && s.ReplicasZero > 0 {
		replaceSharding(s, s.sharding)
		s.ReplicasZero = 0
	}
	zero := number(s.Import, "plan.zero")
	if !isOne || zero < 1 {
		return
	}
	s.ReplicasZero = zero
	s.sharding = replaceSharding(s, []interop.Field{{Path: "plan.zero", Value: "0", From: "one replica"},
		{Path: "plan.zero_group", Value: "1", From: "one replica"}})
	for i := range s.Keys {
		k := &s.Keys[i]
		k.As = slices.DeleteFunc(k.As, func(field string) bool {
			path, _, _ := strings.Cut(field, ":")
			return isSharding(path)
		})
	}
}

// isOneReplica reports whether tensor and pipeline parallelism use all devices; false if their number is not known.
func isOneReplica(s *Source, overrides []spec.Override) bool {
	ranks := 1
	for _, path := range []string{"plan.tp", "plan.pp"} {
		n := number(s.Import, path)
		for _, o := range overrides {
			if o.Key == path {
				n, _ = strconv.Atoi(o.Value)
			}
		}
		ranks *= n
	}
	devices := s.options.Devices
	if devices == 0 {
		devices = s.Devices
	}
	return devices > 0 && ranks == devices
}

// isSharding reports whether a field says how replicas shard state.
func isSharding(path string) bool { return path == "plan.zero" || path == "plan.zero_group" }

// replaceSharding replaces the fields that say how replicas shard state, and returns the old ones.
func replaceSharding(s *Source, added []interop.Field) (old []interop.Field) {
	var fields []interop.Field
	for _, f := range s.Fields {
		if isSharding(f.Path) {
			old = append(old, f)
		} else {
			fields = append(fields, f)
		}
	}
	s.Fields = append(fields, added...)
	return old
}

// number returns a field that is a number; 0 if it is none.
func number(im *interop.Import, path string) int {
	f, _ := im.Field(path)
	n, err := strconv.Atoi(f.Value)
	if err != nil {
		return 0
	}
	return n
}

// atOwnStage returns a plan with the stage of ZeRO that its file says: plans with one replica keep the file's. If the
// precision of the file depends on the stage, a plan that has fewer replicas than the file's is priced with stage 0.
func atOwnStage(im *interop.Import, plan ir.Plan) ir.Plan {
	switch {
	case plan.Replicas() > 1:
	case im.ReplicasZero > 0:
		plan.Zero = im.ReplicasZero
	case im.Precision == nil:
		plan.Zero = number(im, "plan.zero")
	}
	return plan
}
