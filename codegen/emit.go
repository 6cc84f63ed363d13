package codegen

import (
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"
	"github.com/planc-dev/planc/ir"
)

// emitters has one row per op: the function that writes its call. A test requires a row for every op that has a kernel
// and occurs in a segment.
var emitters = [ir.NumOps]func(e *emitter, n *ir.Node){
	ir.OpMatMul: emitMatMul,

	ir.OpAdd: emitLoop, ir.OpSub: emitLoop, ir.OpMul: emitLoop, ir.OpScale: emitLoop, ir.OpBroadcast: emitLoop,
	ir.OpCast: emitLoop,
	ir.OpGelu: emitLoop, ir.OpGeluGrad: emitLoop, ir.OpGeluErf: emitLoop, ir.OpGeluErfGrad: emitLoop,
	ir.OpSilu: emitLoop, ir.OpSiluGrad: emitLoop, ir.OpSigmoid: emitLoop, ir.OpSigmoidGrad: emitLoop,
	ir.OpRelu: emitLoop, ir.OpReluGrad: emitLoop,
	ir.OpSoftcap: emitLoop, ir.OpSoftcapGrad: emitLoop,
	ir.OpFused: emitLoop,

	ir.OpDropout:   emitDropout,
	ir.OpReduceSum: emitReduceSum,
	ir.OpRename:    func(e *emitter, n *ir.Node) { e.alias(n.Outs[0], n.Args[0]) },
	ir.OpSide: func(e *emitter, n *ir.Node) {
		side, _ := n.Args[0].Type.SideSizes(e.mesh)
		e.known[n.Outs[0]] = true
		e.body.Id(e.name(n.Outs[0])).Op(":=").Add(elementsFrom(e, n.Args[0], n.Attr.Offset*side))
	},
	ir.OpSides: func(*emitter, *ir.Node) {}, // its operands are where they should be
	ir.OpSelect: func(e *emitter, n *ir.Node) {
		outer, size, inner := e.around(n.Args[0].Type, n.Attr.Dim)
		e.own("Select", n.Outs[0], n.Args[0], outer, size, inner, jen.Id("r").Dot("Pos"))
	},

	ir.OpJoin: emitJoin,
	ir.OpPart: func(e *emitter, n *ir.Node) {
		outer, size, inner := e.around(n.Args[0].Type, n.Attr.Dim)
		e.own("SliceFrom", n.Outs[0], n.Args[0], outer, size*inner, n.Attr.Offset*inner)
	},

	ir.OpLayerNorm: func(e *emitter, n *ir.Node) {
		args := []any{n.Outs[0], n.Args[0], n.Args[1], e.missing(n.Args[1].Type)}
		if len(n.Args) > 2 {
			args[3] = n.Args[2]
		}
		rows, cols := e.rowsCols(n.Args[0].Type, n.Args[1].Type)
		e.kernel("LayerNorm", append(args, rows, cols, n.Attr.Eps)...)
	},
	ir.OpLayerNormDX: func(e *emitter, n *ir.Node) {
		rows, cols := e.rowsCols(n.Args[0].Type, n.Args[2].Type)
		e.kernel("LayerNormDX", n.Outs[0], n.Args[0], n.Args[1], n.Args[2], rows, cols, n.Attr.Eps)
	},
	ir.OpLayerNormDGain: emitNormDGain("LayerNormDGain"),
	ir.OpRMSNorm: func(e *emitter, n *ir.Node) {
		rows, cols := e.rowsCols(n.Args[0].Type, n.Args[1].Type)
		e.kernel("RMSNorm", n.Outs[0], n.Args[0], n.Args[1], rows, cols, n.Attr.Eps, n.Attr.Unit)
	},
	ir.OpRMSNormDX: func(e *emitter, n *ir.Node) {
		rows, cols := e.rowsCols(n.Args[0].Type, n.Args[2].Type)
		e.kernel("RMSNormDX", n.Outs[0], n.Args[0], n.Args[1], n.Args[2], rows, cols, n.Attr.Eps, n.Attr.Unit)
	},
	ir.OpRMSNormDGain: emitNormDGain("RMSNormDGain"),

	ir.OpIota: func(e *emitter, n *ir.Node) {
		if n.Attr.Documents {
			emitDocumentIota(e, n)
			return
		}
		args := []any{n.Outs[0], e.where(n.Outs[0].Type.Dims[0]), n.Attr.Offset}
		if e.gpu() {
			e.own("Iota", append(args, n.Attr.Max)...)
			return
		}
		e.own("Iota", args...)
		if n.Attr.Max != 0 {
			e.own("CapIDs", n.Outs[0], n.Attr.Max)
		}
	},
	ir.OpEmbed: func(e *emitter, n *ir.Node) {
		lo, size := e.part(n.Args[0].Type.Dims[0])
		e.stored("Embed", "EmbedFrom", n.Outs[0], n.Args[0], n.Args[1], e.count(n.Args[0].Type.Dims[1:]), lo, size)
	},
	ir.OpEmbedGrad: func(e *emitter, n *ir.Node) {
		lo, size := e.part(n.Outs[0].Type.Dims[0])
		cols, acc := e.count(n.Outs[0].Type.Dims[1:]), ir.Accumulates(n)
		if n.Attr.Frozen > 0 {
			e.kernel("EmbedGradBut", n.Outs[0], n.Args[0], n.Args[1], n.Attr.Frozen-1, cols, lo, size, acc)
			return
		}
		e.kernel("EmbedGrad", n.Outs[0], n.Args[0], n.Args[1], cols, lo, size, acc)
	},

	ir.OpRope:          emitRope,
	ir.OpAttention:     emitAttention,
	ir.OpAttentionGrad: emitAttentionGrad, ir.OpAttentionGradSides: emitAttentionGradSides,

	ir.OpLogSumExp: func(e *emitter, n *ir.Node) {
		rows, cols, _, size := e.lastDim(n.Args[0].Type)
		e.kernel("LogSumExp", n.Outs[0], n.Args[0], rows, cols, size)
	},
	ir.OpLogSumExpGrad: func(e *emitter, n *ir.Node) {
		rows, cols, _, size := e.lastDim(n.Args[1].Type)
		e.kernel("LogSumExpGrad", n.Outs[0], n.Args[0], n.Args[1], n.Args[2], rows, cols, size)
	},
	ir.OpPick: func(e *emitter, n *ir.Node) {
		rows, cols, lo, size := e.lastDim(n.Args[0].Type)
		e.stored("Pick", "PickFrom", n.Outs[0], n.Args[0], n.Args[1], rows, cols, lo, size)
	},
	ir.OpPickGrad: func(e *emitter, n *ir.Node) {
		rows, cols, lo, size := e.lastDim(n.Outs[0].Type)
		e.kernel("PickGrad", n.Outs[0], n.Args[0], n.Args[1], rows, cols, lo, size)
	},
	ir.OpCrossEntropy: func(e *emitter, n *ir.Node) {
		ce, dx, x, ids, dl := n.Outs[0], n.Outs[1], n.Args[0], n.Args[1], n.Args[2]
		rows, cols, _, size := e.lastDim(x.Type)
		if args := []any{ce, dx, dl, x, ids, rows, cols, size}; x.Type.Elem.Narrow() && !e.gpu() {
			e.call(jen.Qual(cpuPath, "CrossEntropyHalf"), args...)
		} else {
			e.kernel("CrossEntropy", args...)
		}
	},
	ir.OpInvCount: func(e *emitter, n *ir.Node) {
		if e.gpu() {
			e.own(map[bool]string{true: "InvAux", false: "InvCount"}[n.Attr.Into == ir.IntoAux], n.Outs[0])
			return
		}
		share := jen.Id("r").Dot("Scale").Op("/").Id("r").Dot("Tokens")
		if n.Attr.Into == ir.IntoAux {
			share = rt("AuxScale").Call(jen.Id("r"))
		}
		e.body.Id(e.name(n.Outs[0])).Index(jen.Lit(0)).Op("=").Id("float").Call(share)
	},

	ir.OpLimit: emitLimit, ir.OpTally: emitTally, ir.OpBalance: emitBalance, ir.OpBalanceGrad: emitBalanceGrad,
	ir.OpRounds: emitRounds, ir.OpRoute: emitRoute, ir.OpRouteGrad: emitRouteGrad,
	ir.OpDispatch: emitPlaces("Dispatch"), ir.OpCombine: emitPlaces("Combine"), ir.OpDeal: emitPlaces("Deal"),
	ir.OpCollect: emitPlaces("Collect"),

	ir.OpAccumulate: func(e *emitter, n *ir.Node) {
		x := n.Args[0]
		if n.Attr.Scalar() {
			emitScalar(e, n)
			return
		}
		t := x.Type
		t.Elem = e.p.Plan.Precision.Grads
		grad := e.view(t, e.paramAt(n.Attr.Into, "Grads"), t.LocalElems(e.mesh))
		if e.gpu() || t.Elem.Narrow() || x.Type.Elem.Narrow() {
			e.own("Accumulate", grad, x)
		} else {
			e.kernel("Add", grad, x)
		}
	},

	ir.OpAllReduce: func(e *emitter, n *ir.Node) {
		op := map[ir.Monoid]string{ir.Sum: "Sum", ir.Max: "Max", ir.LSE: "LSE"}[n.Attr.Monoid]
		if e.gpu() {
			e.joined("AllReduce", n, n.Outs[0], n.Args[0], rt(op))
			return
		}
		e.copied(n.Outs[0], n.Args[0])
		e.joined("AllReduce", n, n.Outs[0], rt(op))
	},
	ir.OpReduceScatter: func(e *emitter, n *ir.Node) {
		outer, size, inner := e.around(n.Outs[0].Type, n.Attr.Dim)
		e.moves("ReduceScatter", n, outer, size*inner)
	},
	ir.OpSlice: func(e *emitter, n *ir.Node) {
		outer, size, inner := e.around(n.Outs[0].Type, n.Attr.Dim)
		e.moves("Slice", n, outer, size*inner)
	},
	ir.OpAllGather: func(e *emitter, n *ir.Node) {
		outer, size, inner := e.around(n.Args[0].Type, n.Attr.Dim)
		_, total, _ := e.around(n.Outs[0].Type, n.Attr.Dim)
		e.moves("AllGather", n, outer, size*inner, total*inner)
	},
	ir.OpAllToAll: emitAllToAll, ir.OpShift: emitShift,
}

func emitNormDGain(kernel string) func(*emitter, *ir.Node) {
	return func(e *emitter, n *ir.Node) {
		rows, cols := e.rowsCols(n.Args[0].Type, n.Outs[0].Type)
		e.kernel(kernel, n.Outs[0], n.Args[0], n.Args[1], rows, cols, n.Attr.Eps, ir.Accumulates(n))
	}
}

func emitDropout(e *emitter, n *ir.Node) {
	t := n.Outs[0].Type
	var local, global, offset []jen.Code
	list := func(vs []jen.Code) jen.Code { return jen.Index(jen.Lit(4)).Int().Values(vs...) }
	fields := jen.Dict{}
	for i, d := range t.Dims {
		local, global = append(local, jen.Lit(t.Local(e.mesh)[i])), append(global, jen.Lit(d.Size))
		if !isZigzag(d) {
			offset = append(offset, e.offset(d))
			continue
		}
		w := e.zigzag(d)
		offset = append(offset, w.Clone().Dot("At"))
		for _, f := range []string{"Half", "Then"} {
			fields[jen.Id(f)] = jen.Index(jen.Lit(4)).Int().Values(jen.Dict{jen.Lit(i): w.Clone().Dot(f)})
		}
	}
	fields[jen.Id("Local")], fields[jen.Id("Global")], fields[jen.Id("Offset")] = list(local), list(global),
		list(offset)
	fields[jen.Id("N")] = jen.Lit(len(t.Dims))
	e.kernel("Dropout", n.Outs[0], n.Args[0], e.drop(n), e.dropKey(n), jen.Qual(cpuPath, "GlobalView").Values(fields))
}

func (e *emitter) drop(n *ir.Node) jen.Code {
	return rt("DropoutRate").Call(jen.Id("r"), jen.Lit(n.Attr.Drop))
}

func (e *emitter) dropKey(n *ir.Node) jen.Code {
	return e.runtime("DropoutKey").Call(jen.Id("r"), jen.Lit(e.segID), jen.Id("b").Dot("Layer"), jen.Lit(n.Attr.Key))
}

// middle reports whether dims that are not kept lie between dims that are kept.
func middle(isKept []bool) bool {
	dropped := slices.Index(isKept, false)
	rest := isKept[dropped+slices.Index(isKept[dropped:], true):]
	return isKept[len(isKept)-1] && !slices.Contains(rest, false)
}

// emitReduceSum sums over leading dims, trailing ones, or those in the middle.
func emitReduceSum(e *emitter, n *ir.Node) {
	in, out := n.Args[0].Type, n.Outs[0].Type
	isKept := make([]bool, len(in.Dims))
	for i, d := range in.Dims {
		isKept[i] = out.Has(d.Dim)
	}
	all := e.count(in.Dims)
	k := slices.Index(isKept, true)
	switch {
	case k < 0:
		e.kernel("SumCols", n.Outs[0], n.Args[0], 1, all, ir.Accumulates(n))
	case !slices.Contains(isKept[k:], false):
		cols := e.count(in.Dims[k:])
		e.kernel("SumRows", n.Outs[0], n.Args[0], all/cols, cols, ir.Accumulates(n))
	case k == 0 && !slices.Contains(isKept[slices.Index(isKept, false):], true):
		rows := e.count(in.Dims[:slices.Index(isKept, false)])
		e.kernel("SumCols", n.Outs[0], n.Args[0], rows, all/rows, ir.Accumulates(n))
	case k == 0 && middle(isKept):
		dropped := slices.Index(isKept, false)
		rows, cols := e.count(in.Dims[:dropped]), e.count(in.Dims[dropped+slices.Index(isKept[dropped:], true):])
		e.kernel("SumRowsEach", n.Outs[0], n.Args[0], rows, all/rows/cols, cols, ir.Accumulates(n))
	default:
		panic(fmt.Sprintf("codegen: no kernel sums %v to %v", in, out))
	}
}
