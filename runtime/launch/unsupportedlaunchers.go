package launch

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/planc-dev/planc/runtime/visible"
)

// UnsupportedLauncher is the error for a variable by which a launcher says that this process is one of several, if
// nothing says how many there are and where process 0 runs. Training alone would then repeat the same run in every
// process.
type UnsupportedLauncher struct{ Name, Value, By string }

func (e *UnsupportedLauncher) Error() string {
	rank := "R"
	if e.Name == "JOB_COMPLETION_INDEX" { // the node's number, which a shell or the pod's args can fill in
		rank = "$" + e.Name
	}
	return fmt.Sprintf("%s=%s (%s) says that this process is one of several, but not how many there are and where "+
		"process 0 runs: "+
		"add --nnodes N --node-rank %s --master-addr HOST, or --nnodes 1 if this process is the only one", e.Name,
		e.Value, e.By, rank)
}

// evidence is how a variable shows that its process is one of several.
type evidence int

const (
	size     evidence = iota // a number of processes, nodes or tasks: if it is over 1
	position                 // a number from 0: if it is over 0
	index                    // a number from 0 whose range is unknown: always
	hosts                    // JSON: if its arrays have more than one string
)

// marker is a variable that a launcher sets and that planc does not follow by itself.
type marker struct {
	name   string
	says   evidence
	by     string
	source string
}

// Documentation of launchers.
const (
	torchrunSource = "torch/distributed/elastic/agent/server/local_elastic_agent.py"
	slurmSource    = "srun(1), OUTPUT ENVIRONMENT VARIABLES"
	openMPISource  = "docs.open-mpi.org/en/v5.0.x/tuning-apps/environment-var.html"
	mvapichSource  = "MVAPICH2 user guide, 13: mpirun_rsh parameters"
	jsrunSource    = "lightning/fabric/plugins/environments/lsf.py"
	fluxSource     = "flux-environment(7)"
	palsSource     = "HPE Cray PALS, mpiexec(1)"
	horovodSource  = "horovod/runner/gloo_run.py"
	indexedSource  = "kubernetes.io/docs/tasks/job/indexed-parallel-processing-static"
	lwsSource      = "lws.sigs.k8s.io/docs/reference/labels-annotations-and-environment-variables"
	volcanoSource  = "volcano, docs/user-guide/how_to_use_env_plugin.md"
	batchSource    = "docs.aws.amazon.com/batch/latest/userguide/job_env_vars.html"
	makerSource    = "sagemaker-training-toolkit, ENVIRONMENT_VARIABLES.md"
	cloudRunSource = "cloud.google.com/run/docs/container-contract"
	skySource      = "docs.skypilot.co/en/latest/running-jobs/environment-variables.html"
	dstackSource   = "dstack.ai/docs/guides/distributed-training"
	configSource   = "www.tensorflow.org/guide/distributed_training"
	lightSource    = "lightning/fabric/plugins/environments/lightning.py"
	hydraSource    = "MPICH, src/pm/hydra/proxy"
	paddleSource   = "PaddlePaddle, python/paddle/distributed/launch/controllers/collective.py"
	trainerSource  = "Kubeflow Trainer v2, pkg/constants"
)

// markers are those variables. They are checked only if no supported launcher has started several processes and no flag
// or PET_NNODES sets the number of nodes. Variables of job arrays (SLURM_ARRAY_TASK_ID, LSB_JOBINDEX, SGE_TASK_ID) are
// not among them, because the tasks of an array are separate runs. Variables of an allocation (SLURM_NTASKS) are not
// either, because a batch script has them too.
var markers = []marker{
	{"RANK", position, "torchrun", torchrunSource},
	{"LOCAL_RANK", position, "torchrun", torchrunSource},
	{"LOCAL_WORLD_SIZE", size, "torchrun", torchrunSource},
	{"GROUP_RANK", position, "torchrun", torchrunSource},
	{"GROUP_WORLD_SIZE", size, "torchrun", torchrunSource},
	{"PET_NODE_RANK", position, "Kubeflow Trainer", trainerSource},
	{"NODE_RANK", position, "Lightning", lightSource},
	{"SLURM_PROCID", position, "srun", slurmSource},
	{"SLURM_NODEID", position, "srun", slurmSource},
	{"SLURM_LOCALID", position, "srun", slurmSource},
	{"OMPI_COMM_WORLD_RANK", position, "mpirun", openMPISource},
	{"PMI_RANK", position, "mpirun", "MPICH, Hydra process manager"},
	{"PMIX_RANK", position, "prun or srun --mpi=pmix", "PMIx standard, 5.1"},
	{"MPI_LOCALNRANKS", size, "mpirun", hydraSource},
	{"MPI_LOCALRANKID", position, "mpirun", hydraSource},
	{"MV2_COMM_WORLD_SIZE", size, "MVAPICH2's mpirun_rsh", mvapichSource},
	{"MV2_COMM_WORLD_RANK", position, "MVAPICH2's mpirun_rsh", mvapichSource},
	{"JSM_NAMESPACE_SIZE", size, "jsrun", jsrunSource},
	{"JSM_NAMESPACE_RANK", position, "jsrun", jsrunSource},
	{"FLUX_JOB_SIZE", size, "flux run", fluxSource},
	{"FLUX_TASK_RANK", position, "flux run", fluxSource},
	{"PALS_RANKID", position, "Cray PALS", palsSource},
	{"HOROVOD_SIZE", size, "horovodrun", horovodSource},
	{"HOROVOD_RANK", position, "horovodrun", horovodSource},
	{"JOB_COMPLETION_INDEX", index, "a Kubernetes Indexed Job", indexedSource},
	{"LWS_GROUP_SIZE", size, "a Kubernetes LeaderWorkerSet", lwsSource},
	{"LWS_WORKER_INDEX", position, "a Kubernetes LeaderWorkerSet", lwsSource},
	{"VC_TASK_INDEX", index, "a Volcano job", volcanoSource},
	{"VK_TASK_INDEX", index, "a Volcano job", volcanoSource},
	{"PADDLE_TRAINERS_NUM", size, "PaddlePaddle's launcher", paddleSource},
	{"PADDLE_TRAINER_ID", position, "PaddlePaddle's launcher", paddleSource},
	{"AWS_BATCH_JOB_NUM_NODES", size, "AWS Batch", batchSource},
	{"AWS_BATCH_JOB_NODE_INDEX", position, "AWS Batch", batchSource},
	{"CLOUD_RUN_TASK_COUNT", size, "a Cloud Run job", cloudRunSource},
	{"SKYPILOT_NUM_NODES", size, "SkyPilot", skySource},
	{"SKYPILOT_NODE_RANK", position, "SkyPilot", skySource},
	{"DSTACK_NODES_NUM", size, "dstack", dstackSource},
	{"DSTACK_NODE_RANK", position, "dstack", dstackSource},
	{"SM_HOSTS", hosts, "SageMaker", makerSource},
	{"TF_CONFIG", hosts, "a launcher of TensorFlow's", configSource},
}

// Markers lists the variables that planc does not follow by itself, for people: each with the values that are refused,
// what sets it, and where that is documented.
func Markers() (rows [][4]string) {
	refused := map[evidence]string{size: "over 1", position: "over 0", index: "any number", hosts: "more than one host"}
	for _, m := range markers {
		rows = append(rows, [4]string{m.name, refused[m.says], m.by, m.source})
	}
	return rows
}

// unsupported returns the error for the first marker that says that this process is one of several; nil if there is
// none.
func (e *env) unsupported() error {
	for _, m := range markers {
		if v := e.value(m.name); v != "" && m.says.several(v) {
			return &UnsupportedLauncher{m.name, printable(v), m.by}
		}
	}
	return nil
}

// several reports whether a value shows that its process is one of several.
func (s evidence) several(value string) bool {
	if s == hosts {
		var list any
		return json.Unmarshal([]byte(value), &list) == nil && countTexts(list, false) > 1
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		return false
	}
	return n >= map[evidence]int{size: 2, position: 1, index: 0}[s]
}

// countTexts counts the strings in JSON's arrays.
func countTexts(v any, inArray bool) (n int) {
	switch v := v.(type) {
	case string:
		if inArray {
			n = 1
		}
	case []any:
		for _, x := range v {
			n += countTexts(x, true)
		}
	case map[string]any:
		for _, x := range v {
			n += countTexts(x, false)
		}
	}
	return n
}

// printable formats a value of the environment for a message: escaped and shortened.
func printable(value string) string {
	const limit = 80
	text := visible.Text(value)
	if len(text) > limit {
		return strings.ToValidUTF8(text[:limit], "") + "..."
	}
	return text
}
