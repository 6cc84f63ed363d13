// Package manifests_test decodes planc's manifests of Kubernetes into the Go types that define them, and refuses
// unknown fields. The packages of these types are too large for planc's own module.
package manifests_test

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	trainer "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"

	"github.com/planc-dev/planc/costmodel"
	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/kubernetes"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// target returns a run with a name that Kubernetes would refuse.
func target(nodes int, arch string, command ...string) *interop.Target {
	p := ir.SerialPlan(12, 1, ir.Precision{})
	p.DP = nodes * 8
	return &interop.Target{Plan: p, Job: &spec.Job{Name: "2026_Llama 3.1/8B, the long name of a run by a team"},
		Command: command,
		Hardware: &costmodel.Cluster{Nodes: nodes, GPU: costmodel.GPU{Name: "H100", Arch: arch},
			Node: costmodel.Node{Devices: 8, Host: costmodel.Host{Cores: 96}}}}
}

// commands are those of other trainers, none of which Kubernetes or YAML may change.
var commands = [][]string{nil, {"train.py", "--lr=1e-4", "null", "$(HOME)", "a: #b", "", "\t\"quoted\" \\ 'é'", "-1"}}

// decode decodes a document of a manifest strictly.
func decode[T any](t *testing.T, text string) *T {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	out := new(T)
	if err := d.Decode(out); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// manifest returns the documents of a format's manifest.
func manifest(t *testing.T, f *interop.Format, target *interop.Target) []string {
	t.Helper()
	data, err := f.Write(target)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(data), "\n---\n")
}

func TestIndexedJob(t *testing.T) {
	for _, command := range commands {
		docs := manifest(t, &kubernetes.Job, target(3, "sm_90a", command...))
		service, job := decode[core.Service](t, docs[0]), decode[batch.Job](t, docs[1])
		checkType(t, service.APIVersion, service.Kind, "v1 Service")
		checkType(t, job.APIVersion, job.Kind, "batch/v1 Job")
		if service.Spec.ClusterIP != core.ClusterIPNone || !service.Spec.PublishNotReadyAddresses ||
			service.Spec.Selector[batch.JobNameLabel] != job.Name || service.Name != job.Spec.Template.Spec.Subdomain {
			t.Errorf("the service does not name the pods of the job: %+v", service)
		}
		checkJob(t, &job.Spec, 3, job.Name+"-0."+service.Name, command)
		checkName(t, job.Name)
	}
}

func TestJobSet(t *testing.T) {
	for _, command := range commands {
		docs := manifest(t, &kubernetes.JobSet, target(3, "sm_90a", command...))
		set := decode[jobset.JobSet](t, docs[0])
		checkType(t, set.APIVersion, set.Kind, jobset.GroupVersion.String()+" JobSet")
		jobs := set.Spec.ReplicatedJobs
		if len(jobs) != 1 || jobs[0].Replicas != 1 {
			t.Fatalf("the set has jobs %+v", jobs)
		}
		// JobSet names pods SET-JOB-REPLICA-INDEX.SET
		checkJob(t, &jobs[0].Template.Spec, 3, set.Name+"-"+jobs[0].Name+"-0-0."+set.Name, command)
		for _, rule := range set.Spec.FailurePolicy.Rules {
			if rule.Action != jobset.FailJobSet ||
				!slices.Equal(rule.OnJobFailureReasons, []string{batch.JobReasonPodFailurePolicy}) {
				t.Errorf("the set's rule is %+v", rule)
			}
		}
		checkName(t, set.Name)
	}
}

func TestTrainJob(t *testing.T) {
	for _, command := range commands {
		docs := manifest(t, &kubernetes.TrainJob, target(3, "sm_90a", command...))
		job := decode[trainer.TrainJob](t, docs[0])
		checkType(t, job.APIVersion, job.Kind, trainer.GroupVersion.String()+" "+trainer.TrainJobKind)
		trained := job.Spec.Trainer
		if *trained.NumNodes != 3 || trained.NumProcPerNode.IntValue() != 8 || gpus(trained.ResourcesPerNode) != 8 {
			t.Errorf("the job has %+v", trained)
		}
		checkCommand(t, trained.Command, trained.Args, command)
		checkName(t, job.Name)
	}
}

// A program for CPUs is one pod, which asks for cores.
func TestCPUs(t *testing.T) {
	docs := manifest(t, &kubernetes.Job, target(1, "cpu"))
	job := decode[batch.Job](t, docs[1])
	container := job.Spec.Template.Spec.Containers[0]
	if gpus(&container.Resources) != 0 || container.Resources.Requests.Cpu().Value() != 96 ||
		!slices.Equal(container.Args, []string{"--nnodes=1"}) {
		t.Errorf("%+v", container)
	}
}

func checkType(t *testing.T, version, kind, want string) {
	t.Helper()
	if version+" "+kind != want {
		t.Errorf("%s %s, want %s", version, kind, want)
	}
}

// checkName holds a name to the rules for Services. The names of pods are longer.
func checkName(t *testing.T, name string) {
	t.Helper()
	if !regexp.MustCompile(`^[a-z]([-a-z0-9]{0,48}[a-z0-9])?$`).MatchString(name) {
		t.Errorf("the name %q is refused", name)
	}
}

func gpus(r *core.ResourceRequirements) int64 {
	n := r.Limits["nvidia.com/gpu"]
	return n.Value()
}

// checkJob holds a job to what Kubernetes requires of Indexed Jobs with a pod failure policy, and to planc's exit
// codes.
func checkJob(t *testing.T, spec *batch.JobSpec, nodes int32, master string, command []string) {
	t.Helper()
	pod := &spec.Template.Spec
	container := &pod.Containers[0]
	switch {
	case *spec.CompletionMode != batch.IndexedCompletion || *spec.Completions != nodes || *spec.Parallelism != nodes:
		t.Errorf("not an Indexed Job of %d pods: %+v", nodes, spec)
	case pod.RestartPolicy != core.RestartPolicyNever:
		t.Error("a pod failure policy needs the restart policy Never")
	case gpus(&container.Resources) != 8:
		t.Errorf("the resources are %+v", container.Resources)
	}
	for _, mount := range container.VolumeMounts {
		if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == mount.Name }) {
			t.Errorf("the pod has no volume %s", mount.Name)
		}
	}
	if !slices.Contains(container.Args, "--master-addr="+master) {
		t.Errorf("the first pod is %s: %q", master, container.Args)
	}
	checkCommand(t, container.Command, container.Args, command)
	codes := map[int32]batch.PodFailurePolicyAction{}
	for _, rule := range spec.PodFailurePolicy.Rules {
		if rule.OnExitCodes == nil {
			continue
		}
		if *rule.OnExitCodes.ContainerName != container.Name || !slices.IsSorted(rule.OnExitCodes.Values) {
			t.Errorf("the rule is about %s: %v", *rule.OnExitCodes.ContainerName, rule.OnExitCodes.Values)
		}
		for _, code := range rule.OnExitCodes.Values {
			codes[code] = rule.Action
		}
	}
	if command != nil && len(codes) > 0 {
		t.Errorf("the exit codes %v are planc's own", codes)
	}
	if command == nil && (codes[2] != batch.PodFailurePolicyActionFailJob ||
		codes[75] != batch.PodFailurePolicyActionIgnore || codes[1] != "") {
		t.Errorf("the exit codes are %v", codes)
	}
}

// checkCommand holds a container's command to the words of the trainer, which Kubernetes must not expand.
func checkCommand(t *testing.T, words, args, command []string) {
	t.Helper()
	all := slices.Concat(words, args)
	if command == nil {
		if all[0] != "./train" {
			t.Errorf("the pod starts %q", all)
		}
		return
	}
	got := slices.Clone(all[max(0, len(all)-len(command)):])
	for i := range got {
		got[i] = strings.ReplaceAll(got[i], "$$(", "$(")
	}
	if all[0] != "torchrun" || !slices.Equal(got, command) || strings.Contains(strings.ReplaceAll(
		strings.Join(all, " "), "$$(", ""), "$(HOME)") {
		t.Errorf("the pod starts %q", all)
	}
}
