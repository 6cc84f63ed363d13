package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/planc-dev/planc/cmd/planc/internal/layout"
	"github.com/planc-dev/planc/ir/spec"
	"github.com/planc-dev/planc/planner/quantity"
	"github.com/planc-dev/planc/runtime/amount"
)

func modelsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "models [NAME]",
		Short: "list the model catalogue; NAME prints its config.json",
		Long: `models lists the models that a job can name, by family. With a NAME it prints that model's config.json, which
you can edit and use as a job's model.`,
		Example: "planc models llama3-8b > config.json",
		Args:    oneName("model"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				return printModel(a, args[0])
			}
			return printModels(a)
		},
		ValidArgsFunction: firstArg(spec.ModelNames),
	}
	a.jsonFlag(c)
	return c
}

// modelRow describes a model of the catalogue.
type modelRow struct {
	Name      string   `json:"name"`
	Aliases   []string `json:"aliases"`
	Family    string   `json:"family"`
	Params    int64    `json:"params"`
	Published string   `json:"published"` // published number of parameters, if it is rounded
	Layers    int      `json:"layers"`
	Hidden    int      `json:"hidden"`
	Context   int      `json:"context"` // maximal number of positions; 0 means any number
	Vocab     int      `json:"vocab"`
	Source    string   `json:"source"`
	Date      string   `json:"date"`
	Note      string   `json:"note"`

	Config json.RawMessage `json:"config,omitempty"` // config.json, if one model is printed
}

// modelRowOf returns the description of a model of the catalogue.
func modelRowOf(name string) modelRow {
	c, err := spec.LoadModel(name, nil)
	if err != nil {
		panic(fmt.Sprintf("model %s of the catalogue: %v", name, err))
	}
	m, err := spec.ModelInfo(name)
	if err != nil {
		panic(fmt.Sprintf("model %s of the catalogue: %v", name, err))
	}
	return modelRow{Name: m.Name, Aliases: append([]string{}, m.Aliases...), Family: m.Family, Params: c.Params(),
		Published: m.Published,
		Layers:    c.Layers, Hidden: c.Hidden, Context: c.MaxPositions, Vocab: c.Vocab, Source: m.Source, Date: m.Date,
		Note: m.Note}
}

// catalogueModels returns all models, ordered by family.
func catalogueModels() (rows []modelRow) {
	for _, name := range spec.ModelNames() {
		rows = append(rows, modelRowOf(name))
	}
	slices.SortStableFunc(rows, func(a, b modelRow) int { return strings.Compare(a.Family, b.Family) })
	return rows
}

func printModels(a *app) error {
	rows := catalogueModels()
	if a.json {
		return a.PrintJSON(map[string]any{"schema": 1, "models": rows})
	}
	return a.Print(modelsScreen(rows))
}

// modelsScreen formats the catalogue as a table, by family.
func modelsScreen(rows []modelRow) string {
	columns := []layout.Column{layout.Left("MODEL"), layout.Right("PARAMS"), layout.Right("LAYERS"),
		layout.Right("HIDDEN"), layout.Right("CONTEXT"),
		layout.Left("SOURCE")}
	var cells [][]string
	family := ""
	for _, r := range rows {
		if r.Family != family {
			family = r.Family
			cells = append(cells, []string{family, "", "", "", "", ""})
		}
		cells = append(cells, []string{"  " + r.Name, amount.Params(r.Params),
			fmt.Sprint(r.Layers), quantity.Count(r.Hidden),
			r.contextText(), r.sourceText()})
	}
	return layout.Table(columns, cells) + "\nplanc models NAME prints one as config.json · planc plan --model NAME " +
		"...\n"
}

func (r modelRow) contextText() string {
	if r.Context == 0 {
		return "any"
	}
	return quantity.Count(r.Context)
}

// sourceText returns who published the model and when, in the form of a citation: Brown et al. 2020.
func (r modelRow) sourceText() string {
	parts := strings.Split(r.Source, "; ")
	who, _, _ := strings.Cut(parts[len(parts)-1], ",")
	if strings.Contains(who, " hub") {
		who = "Hugging Face hub"
	}
	year, _, _ := strings.Cut(r.Date, "-")
	return who + " " + year
}

// printModel prints the config.json of one model.
func printModel(a *app, name string) error {
	data, err := spec.ModelFile(name)
	if err != nil {
		return inputErrorf(spec.UnknownModel, spec.NearestModel(name),
			"the catalogue has no model %s; planc models lists its models", name)
	}
	if !a.json {
		return a.Print(string(data))
	}
	row := modelRowOf(name)
	row.Config = data
	return a.PrintJSON(row)
}
