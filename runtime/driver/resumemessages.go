package driver

import "fmt"

// LaunchedBy is the environment variable that planc run sets. The binary's flags then follow --.
const LaunchedBy = "PLANC_RUN"

// nothingToDo returns the message for a finished run that is started again.
func nothingToDo(total int, byPlanc bool) string {
	return fmt.Sprintf("nothing to do: step %d of %[1]d is done; `%s--steps %d` continues, `%[2]s--resume never` "+
		"starts over",
		total, dashes(byPlanc), 2*total)
}

// pastLast returns the message for a run that resumes after its last step, which last names.
func pastLast(step, total int, last string, byPlanc bool) string {
	return fmt.Sprintf("nothing to do: step %d is after %s; `%s--steps %d` trains %d more, `%[3]s--resume never` "+
		"starts over",
		step, last, dashes(byPlanc), step+total, total)
}

// dashes returns the separator between planc run's flags and the binary's.
func dashes(byPlanc bool) string {
	if byPlanc {
		return "-- "
	}
	return ""
}
