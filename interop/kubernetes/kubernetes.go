// Package kubernetes writes manifests that start a run on Kubernetes: as an Indexed Job, as a JobSet, or as a TrainJob
// of Kubeflow Trainer v2. Each pod is a node.
//
// In all of them, planc's exit codes decide what happens to a pod that ended (docs/cli.md): 2, 3 and 5 end the run,
// because the same pod would fail again. 75 means that the pod was stopped and has saved a checkpoint, so it is
// replaced and does not count as a failure. Every other code counts, and the run is started again a few times.
package kubernetes

import (
	"fmt"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/interop/launcher"
)

// Job is an Indexed Job with a headless Service, which needs nothing that Kubernetes itself does not have.
var Job = interop.Format{
	Name:  "kubernetes",
	Title: "an Indexed Job of Kubernetes",
	Tool:  "Kubernetes",
	Write: func(t *interop.Target) ([]byte, error) { return write(t, writeJob) },
	Ext:   ".yaml",
}

// JobSet is a JobSet, which restarts all pods together.
var JobSet = interop.Format{
	Name:  "kubernetes:jobset",
	Title: "a JobSet of Kubernetes",
	Tool:  "Kubernetes",
	Write: func(t *interop.Target) ([]byte, error) { return write(t, writeJobSet) },
	Ext:   ".yaml",
}

// TrainJob is a TrainJob, whose runtime decides about restarts.
var TrainJob = interop.Format{
	Name:  "kubernetes:trainjob",
	Title: "a TrainJob of Kubeflow Trainer",
	Tool:  "Kubernetes",
	Write: func(t *interop.Target) ([]byte, error) { return write(t, writeTrainJob) },
	Ext:   ".yaml",
}

// maxFailures is how often a failed run is started again.
const maxFailures = 3

func write(t *interop.Target, body func(*yamlWriter, *pods)) ([]byte, error) {
	r, err := launcher.New(t)
	if err != nil {
		return nil, err
	}
	w := &yamlWriter{}
	w.out.WriteString(r.BashComments())
	w.line(0, "# Replace the image, and the volume claim if there is one.")
	body(w, &pods{Run: r, name: label(r.Name)})
	return []byte(w.out.String()), nil
}

// label returns a name that Kubernetes accepts for a Service and a Job: lower-case letters, digits and dashes, with a
// letter in front. The names of pods, which are longer, must have at most 63 characters.
func label(name string) string {
	const longest = 40
	text := strings.NewReplacer(".", "-", "_", "-").Replace(strings.ToLower(name))
	if text[0] >= '0' && text[0] <= '9' {
		text = "run-" + text
	}
	return strings.Trim(text[:min(len(text), longest)], "-")
}

// writeJob writes a headless Service, by which pods find the first one, and a Job.
func writeJob(w *yamlWriter, p *pods) {
	w.lines(0, "apiVersion: v1", "kind: Service", "metadata:", "  name: "+p.name, "spec:", "  clusterIP: None",
		"  publishNotReadyAddresses: true", "  selector:", "    batch.kubernetes.io/job-name: "+p.name, "---",
		"apiVersion: batch/v1", "kind: Job", "metadata:", "  name: "+p.name, "spec:")
	// if one pod fails, all end, and each counts
	p.writeJobSpec(w, 1, maxFailures*p.Nodes, p.name+"-0."+p.name)
}

// writeJobSet writes a JobSet of one Job. A failed pod fails the Job, and the JobSet starts all pods again.
func writeJobSet(w *yamlWriter, p *pods) {
	w.lines(0, "apiVersion: jobset.x-k8s.io/v1alpha2", "kind: JobSet", "metadata:", "  name: "+p.name, "spec:",
		"  failurePolicy:", fmt.Sprintf("    maxRestarts: %d", maxFailures))
	if p.IsPlanc() {
		w.lines(2, "rules:", "- name: invalid", "  action: FailJobSet", "  onJobFailureReasons: [PodFailurePolicy]")
	}
	w.lines(1, "network:", "  enableDNSHostnames: true", "  publishNotReadyAddresses: true", "replicatedJobs:",
		"- name: node", "  replicas: 1", "  template:", "    spec:")
	p.inJobSet = true
	p.writeJobSpec(w, 4, 0, p.name+"-node-0-0."+p.name)
}

// writeTrainJob writes a TrainJob. Its runtime sets the variables PET_NNODES and so on, which torchrun and planc read.
func writeTrainJob(w *yamlWriter, p *pods) {
	w.lines(0, "apiVersion: trainer.kubeflow.org/v1alpha1", "kind: TrainJob", "metadata:", "  name: "+p.name, "spec:",
		"  runtimeRef:", "    name: torch-distributed", "  trainer:", "    image: "+image,
		fmt.Sprintf("    numNodes: %d", p.Nodes), fmt.Sprintf("    numProcPerNode: %d", p.Devices))
	p.writeCommand(w, 2, nil)
	p.writeResources(w, 2, "resourcesPerNode")
}

// yamlWriter writes lines with their indentation.
type yamlWriter struct{ out strings.Builder }

// line writes a line that is indented by a number of levels.
func (w *yamlWriter) line(depth int, text string) {
	w.out.WriteString(strings.Repeat("  ", depth) + text + "\n")
}

func (w *yamlWriter) lines(depth int, texts ...string) {
	for _, t := range texts {
		w.line(depth, t)
	}
}
