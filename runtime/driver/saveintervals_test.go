package driver

import (
	"testing"
	"time"

	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/report"
)

// The first process's clock decides after which step a checkpoint is due: all processes learn it from the same report,
// whatever their own clocks say.
func TestFirstProcessDecidesWhenToSave(t *testing.T) {
	for _, first := range []bool{true, false} {
		clock := time.Unix(0, 0)
		var sent passReport
		peers := &received{say: func(int) passReport { return passReport{Save: !first && clock.Unix() >= 60} }}
		team := &launch.Team{Launch: &launch.Launch{Processes: 2, Ranks: 2, Count: 1}, Peers: peers}
		if !first {
			team.Process, team.First = 1, 1
		}
		p := idle(2)
		crew, err := newCrew(p, 0, team)
		if err != nil {
			t.Fatal(err)
		}
		j := &job{p: p, team: team, crew: crew, ctx: t.Context(), outputs: outputs{metrics: &report.Metrics{}}}
		j.o.Now = func() time.Time { return clock }
		j.s.Train.Checkpoint.EveryMinutes = 1
		m, s := &member{job: j}, &saver{job: j}
		s.restartTimer()
		for _, x := range []struct {
			at  int64
			due bool
		}{{59, false}, {60, true}, {61, true}} {
			clock = time.Unix(x.at, 0)
			if s.isTimeDue() && x.at == 60 {
				t.Error("a checkpoint is due before the processes have reported")
			}
			if err := m.exchangeReports(); err != nil {
				t.Fatal(err)
			}
			sent = peers.own[len(peers.own)-1]
			if s.isTimeDue() != x.due || sent.Save != (first && x.due) {
				t.Errorf("first %t, after %d s: due %t, sent %+v", first, x.at, s.isTimeDue(), sent)
			}
		}
		s.restartTimer()
		if s.isTimeDue() {
			t.Error("a checkpoint is due just after one")
		}
		crew.close()
	}
}
