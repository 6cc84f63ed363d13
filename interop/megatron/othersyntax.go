package megatron

import (
	"errors"
	"slices"
	"strings"

	"github.com/planc-dev/planc/interop"
	"github.com/planc-dev/planc/ir"
	"github.com/planc-dev/planc/ir/spec"
)

// Setting is a setting of Megatron-LM in a file of another syntax, such as Megatron-Bridge's YAML.
type Setting struct {
	Dest    string // the setting's name: "tensor_model_parallel_size"
	Spelled string // as the file names it: "model.tensor_model_parallel_size"
	Value   string // as Python prints it: "True", "None", "[1, 2]"
	Pos     ir.Pos
}

// HasSetting reports whether Megatron-LM has a setting.
func HasSetting(dest string) bool { return len(options().byDest[dest]) > 0 }

// ImportSettings makes an import of settings that a file has in another syntax. It accounts for all of them, also those
// without effect. spell returns how the file names a setting.
func ImportSettings(format string, files []interop.File, list []Setting, spell func(dest string) string,
	o interop.Options) (*interop.Import, error) {
	src := &source{isDump: true, env: map[string]string{}}
	var held []*argument
	for _, s := range list {
		a := &argument{spelled: s.Dest, pos: s.Pos}
		a.fromDump(s.Value)
		a.spelled = s.Spelled
		if a.isDefault() && s.Dest != "seed" { // planc has another default seed
			src.launch = append(src.launch, interop.Key{Pos: s.Pos, Name: s.Spelled, Value: s.Value,
				Use: interop.NoEffect, Note: "the default"})
			continue
		}
		if a.option.use == "taken" && !a.option.isFlag() {
			for _, value := range a.values {
				if why := a.option.check(value); why != "" {
					src.diags.Addf(s.Pos, BadOption, "%s %s: the value %s", s.Spelled, value, why)
				}
			}
		}
		held = append(held, a)
	}
	if err := src.diags.Err(); err != nil {
		return nil, err
	}
	src.settings = newSettings(held)
	d := &dialect{format: format, option: func(name string) *Option { return options().byName[name] },
		spell: func(o *Option) string { return spell(o.Dest) }}
	im, err := src.importAs(d, files, o)
	var diags ir.Diags
	if errors.As(err, &diags) { // two parts of the plan may need the same setting
		return nil, slices.Compact(diags)
	}
	return im, err
}

// SettingValues returns the settings that say the target's plan. A flag's value is "true" or "false", and that of a
// setting that must be absent is "".
func SettingValues(t *interop.Target) (out []interop.Value) {
	d := &dialect{spell: func(o *Option) string { return o.Dest }}
	for _, v := range d.values(t) {
		list := options().byDest[v.Key]
		if !v.Env && len(list) > 0 && list[0].isFlag() {
			v.Text = "false"
			if !v.IsAbsent {
				v.Text = "true"
			}
			v.IsAbsent = false
		}
		out = append(out, v)
	}
	return out
}

// ModelSettings returns the settings that give a model its shape, or why Megatron-LM does not have it. A flag's value
// is "true", or "false" if it switches something off.
func ModelSettings(c *spec.Config, seq int) (out []Setting, err error) {
	args, err := modelArguments(c, seq)
	return settingsOf(args), err
}

// RecipeSettings returns the settings of a job's types, optimizer, schedule and length.
func RecipeSettings(j *spec.Job) []Setting { return settingsOf(trainArguments(j)) }

// settingsOf returns the settings of arguments.
func settingsOf(args []string) (out []Setting) {
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, " ")
		o := options().byName[name]
		if o.isFlag() {
			value = "true"
			if o.Type == "false" {
				value = "false"
			}
		}
		out = append(out, Setting{Dest: o.Dest, Value: value})
	}
	return out
}

// Refusals returns what of a target Megatron-LM cannot express.
func Refusals(t *interop.Target) ir.Diags { return refusals(t) }
