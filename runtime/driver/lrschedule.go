package driver

import (
	"math"

	"github.com/planc-dev/planc/runtime/program"
)

// schedules maps a schedule's name to its learning rate at step s (1 to total). During the first w = Warmup steps,
// every schedule has the rate lr·s/w. After that, with min = MinLR and u = (s-w)/(total-w), which is 1 at the last
// step:
//
//	constant      lr
//	linear        min + (lr-min)·(1-u)
//	cosine        min + (lr-min)·(1+cos(πu))/2
//	wsd           lr, and over the last d = Decay steps lr + (min-lr)·(s-(total-d))/d
//	inverse_sqrt  max(min, lr·√(max(w,1)/s))
var schedules = map[string]func(o *program.ScheduleSettings, lr float64, s, total int) float64{
	"": constantRate, "constant": constantRate, "linear": linearRate,
	"cosine": cosineRate, "wsd": wsdRate, "inverse_sqrt": inverseSqrtRate,
}

// rate returns the learning rate of step s of total.
func rate(o *program.ScheduleSettings, lr float64, s, total int) float64 {
	if s <= o.Warmup {
		return lr * float64(s) / float64(o.Warmup)
	}
	return schedules[o.Kind](o, lr, s, total)
}

// progressOf returns u: the fraction of the steps after warm-up that is done at the end of step s.
func progressOf(o *program.ScheduleSettings, s, total int) float64 {
	return min(1, float64(s-o.Warmup)/float64(max(1, total-o.Warmup)))
}

func constantRate(_ *program.ScheduleSettings, lr float64, _, _ int) float64 { return lr }

func linearRate(o *program.ScheduleSettings, lr float64, s, total int) float64 {
	return o.MinLR + float64((lr-o.MinLR)*(1-progressOf(o, s, total)))
}

func cosineRate(o *program.ScheduleSettings, lr float64, s, total int) float64 {
	return o.MinLR + float64((lr-o.MinLR)*(1+math.Cos(float64(math.Pi*progressOf(o, s, total))))/2)
}

func wsdRate(o *program.ScheduleSettings, lr float64, s, total int) float64 {
	late := s - (total - o.Decay)
	if late <= 0 {
		return lr
	}
	return lr + float64((o.MinLR-lr)*min(1, float64(late)/float64(o.Decay)))
}

func inverseSqrtRate(o *program.ScheduleSettings, lr float64, s, _ int) float64 {
	return max(o.MinLR, float64(lr*math.Sqrt(float64(max(o.Warmup, 1))/float64(s))))
}
