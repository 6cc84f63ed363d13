package runtime

import (
	"github.com/planc-dev/planc/runtime/launch"
	"github.com/planc-dev/planc/runtime/program"
)

// The tables of a program, which the compiler fills in and generated code holds.
type (
	Elem               = program.Elem
	Types              = program.Types
	OptimizerKind      = program.OptimizerKind
	Axis               = program.Axis
	Group              = program.Group
	Model              = program.Model
	Experts            = program.Experts
	AttentionShape     = program.AttentionShape
	GEMM               = program.GEMM
	BatchLayout        = program.BatchLayout
	Inputs             = program.Inputs
	Dim                = program.Dim
	InitKind           = program.InitKind
	Init               = program.Init
	Param              = program.Param
	Place              = program.Place
	FirstWrite         = program.FirstWrite
	Ref                = program.Ref
	Stage              = program.Stage
	Chunk              = program.Chunk
	LayerRun           = program.LayerRun
	Bucket             = program.Bucket
	Piece              = program.Piece
	Arena              = program.Arena
	Region             = program.Region
	Plan               = program.Plan
	Precision          = program.Precision
	DecidedFrom        = program.DecidedFrom
	Predict            = program.Predict
	Settings           = program.Settings
	DataSettings       = program.DataSettings
	File               = program.File
	TrainSettings      = program.TrainSettings
	PrecisionSettings  = program.PrecisionSettings
	LossScaleSettings  = program.LossScaleSettings
	ExpertSettings     = program.ExpertSettings
	OptimizerSettings  = program.OptimizerSettings
	ScheduleSettings   = program.ScheduleSettings
	EvalSettings       = program.EvalSettings
	CheckpointSettings = program.CheckpointSettings
	EarlyStopSettings  = program.EarlyStopSettings
	Weights            = program.Weights
	Published          = program.Published
	Share              = program.Share
)

// The element types of tensors.
const (
	F32  = program.F32
	F64  = program.F64
	BF16 = program.BF16
	F16  = program.F16
)

// The optimizers.
const (
	AdamW = program.AdamW
	Adam  = program.Adam
	SGD   = program.SGD
)

// The initial distributions of parameters.
const (
	Zeros  = program.Zeros
	Ones   = program.Ones
	Normal = program.Normal
)

// Team is the launch that a run is part of, and Peers the connection between its processes.
type (
	Team  = launch.Team
	Peers = launch.Peers
)
