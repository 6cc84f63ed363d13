package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop/launcher"
)

// image is the container image, which only the user knows.
const image = "REGISTRY/IMAGE:TAG"

// pods are the pods of a run.
type pods struct {
	*launcher.Run
	name     string
	inJobSet bool
}

// writeJobSpec writes the spec of an Indexed Job. master is the name of its first pod.
func (p *pods) writeJobSpec(w *yamlWriter, depth, backoffLimit int, master string) {
	w.lines(depth, "completionMode: Indexed", fmt.Sprintf("completions: %d", p.Nodes),
		fmt.Sprintf("parallelism: %d", p.Nodes), fmt.Sprintf("backoffLimit: %d", backoffLimit), "podFailurePolicy:",
		"  rules:")
	if p.IsPlanc() {
		w.lines(depth+1, "# invalid input, a machine that cannot run the program, the numerics guard",
			"- action: FailJob", "  onExitCodes: {containerName: train, operator: In, values: [2, 3, 5]}",
			"# stopped, with a checkpoint", "- action: Ignore",
			"  onExitCodes: {containerName: train, operator: In, values: [75]}")
	}
	w.lines(depth+1, "# the node was drained or the pod was preempted", "- action: Ignore", "  onPodConditions:",
		"  - {type: DisruptionTarget, status: \"True\"}")
	w.lines(depth, "template:", "  spec:")
	if !p.inJobSet { // a JobSet sets it
		w.line(depth+2, "subdomain: "+p.name)
	}
	w.lines(depth+2, "restartPolicy: Never", "# time for a step and a checkpoint", "terminationGracePeriodSeconds: 600",
		"containers:", "- name: train",
		"  image: "+image)
	p.writeCommand(w, depth+3, p.nodeOptions(master))
	p.writeResources(w, depth+3, "resources")
	w.lines(depth+3, "volumeMounts:", "- {name: work, mountPath: /work}",
		"- {name: shared-memory, mountPath: /dev/shm}", "workingDir: /work")
	w.lines(depth+2, "volumes:", "- name: work # data, and checkpoints of the first pod", "  persistentVolumeClaim:",
		"    claimName: "+p.name, "- name: shared-memory # for NCCL", "  emptyDir: {medium: Memory}")
}

// nodeOptions are the options by which planc's binary and torchrun find the other nodes.
func (p *pods) nodeOptions(master string) []string {
	if p.IsPlanc() && p.Nodes == 1 {
		return []string{"--nnodes=1"} // the index of the pod alone would be refused
	}
	return []string{fmt.Sprintf("--nnodes=%d", p.Nodes), "--node-rank=$(JOB_COMPLETION_INDEX)",
		fmt.Sprintf("--nproc-per-node=%d", p.Devices), "--master-addr=" + master, "--master-port=29500"}
}

// writeCommand writes the command and the arguments of a container, one a line.
func (p *pods) writeCommand(w *yamlWriter, depth int, options []string) {
	words := append(p.Words(), options...)
	fixed := len(options)
	if !p.IsPlanc() {
		words = p.Torchrun(options...)
	}
	w.line(depth, "command: ["+yamlString(words[0])+"]")
	if len(words) == 1 {
		return
	}
	w.line(depth, "args:")
	for i, word := range words[1:] {
		if i >= fixed {
			word = strings.ReplaceAll(word, "$(", "$$(") // Kubernetes replaces $(NAME) by a variable
		}
		w.line(depth, "- "+yamlString(word))
	}
}

// writeResources writes the devices of a pod.
func (p *pods) writeResources(w *yamlWriter, depth int, key string) {
	if p.HasGPUs {
		w.lines(depth, key+":", fmt.Sprintf("  limits: {nvidia.com/gpu: %d}", p.Devices))
		return
	}
	if p.Cores > 0 {
		w.lines(depth, key+":", fmt.Sprintf("  requests: {cpu: %d}", p.Cores))
	}
}

// yamlString quotes a string for YAML, whose double quotes are those of JSON.
func yamlString(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string has an encoding
	}
	return strings.TrimSuffix(b.String(), "\n")
}
