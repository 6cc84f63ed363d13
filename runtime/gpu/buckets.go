//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// jobKinds is how many kinds of jobs a bucket has.
const jobKinds = 4

// do is what a job of each kind puts on the side line.
var do = [jobKinds]func(*device, *rt.BucketPart){
	rt.Reducing: (*device).reduce, rt.Scattering: (*device).scatter, rt.Gathering: (*device).gather,
	rt.Fetching: (*device).gather,
}

// Start begins a job of a bucket beside what follows.
func (d *device) Start(bucket int, job rt.Job) {
	b := d.rank.BucketPart(bucket)
	d.side.after(d.compute)
	d.on = d.side
	do[job](d, &b)
	d.on = d.compute
	done := &d.jobs[bucket][job]
	if *done == nil {
		var err error
		*done, err = cuda.NewEvent(false)
		rt.Check(err)
	}
	rt.Check(d.side.stream.Record(*done))
}

// Wait makes what follows wait for the job.
func (d *device) Wait(bucket int, job rt.Job) {
	rt.Check(d.compute.stream.Wait(d.jobs[bucket][job]))
}

// wire is gradients as they are sent: where they are or, in a narrower type, beside.
type wire struct {
	at   cuda.Pointer
	elem rt.Elem
}

// narrow is n gradients as they are sent, rounded to that type if it is another than they are kept in.
func (d *device) narrow(at, n int) wire {
	t := d.rank.Program.Kept()
	if t.Reduce == t.Grads {
		return wire{d.ptr(at), t.Grads}
	}
	w := wire{d.scratch(n * t.Reduce.Size()), t.Reduce}
	d.cast(w.at, d.ptr(at), t.Reduce, t.Grads, n)
	return w
}

// widen puts the wire's n sums from element first on back to where they are kept.
func (d *device) widen(w wire, first, at, n int) {
	if t := d.rank.Program.Kept(); w.elem != t.Grads {
		d.cast(d.ptr(at), w.from(first), t.Grads, w.elem, n)
	}
}

// from is where the wire's element i is.
func (w wire) from(i int) cuda.Pointer { return w.at + cuda.Pointer(i*w.elem.Size()) }

// cast rounds n numbers of a type to another.
func (d *device) cast(to, from cuda.Pointer, toElem, fromElem rt.Elem, n int) {
	d.run("cast", suffixOf(toElem)+"_"+suffixOf(fromElem), 1, n, d.args().Pointer(to).Pointer(from).Uint64(uint64(n)))
}

// reduce sums a bucket's gradients, as [rt.StartReduce] says.
func (d *device) reduce(b *rt.BucketPart) {
	at, n, first := b.Grads, b.Elems, b.First
	if b.Each {
		at, n, first = b.MyGrads, b.Mine, 0
	}
	w := d.narrow(at, n)
	for _, line := range []string{b.Reduce, b.Ends} {
		d.sum(line, w.at, n, w.elem)
	}
	switch {
	case b.Each || b.Shard == "":
		first, b.Mine = 0, n // there are no others
	default:
		comm := d.byLine[b.Shard]
		rt.Check(comm.ReduceScatter(d.on.stream, w.from(first), w.at, b.Mine, typeOf(w.elem)))
		at = b.MyGrads
	}
	d.sum(b.Sum, w.from(first), b.Mine, w.elem)
	d.widen(w, first, at, b.Mine)
}

// sum sums n numbers over a line, if there is one.
func (d *device) sum(line string, at cuda.Pointer, n int, e rt.Elem) {
	if line != "" {
		rt.Check(d.byLine[line].AllReduce(d.on.stream, at, at, n, typeOf(e), cuda.Sum))
	}
}

// scatter sums a micro-batch's gradients of a bucket, and adds this rank's part to what it has.
func (d *device) scatter(b *rt.BucketPart) {
	kept := d.rank.Program.Kept().Grads
	w := wire{d.ptr(b.Grads), kept}
	if b.Shard != "" {
		w = d.narrow(b.Grads, b.Elems)
		rt.Check(d.byLine[b.Shard].ReduceScatter(d.on.stream, w.from(b.First), w.at, b.Mine, typeOf(w.elem)))
	}
	d.run("accumulate", suffixOf(kept)+"_"+suffixOf(w.elem), 1, b.Mine,
		d.args().Pointer(d.ptr(b.MyGrads)).Pointer(w.from(b.First)).Uint64(uint64(b.Mine)))
}

// gather makes a bucket's parameters whole.
func (d *device) gather(b *rt.BucketPart) {
	e := d.rank.Program.Kept().Params
	if b.Shard == "" {
		if n := b.Elems * e.Size(); b.Params != b.MyParams {
			rt.Check(d.on.stream.Copy(d.memory(b.Params, n), d.memory(b.MyParams, n)))
		}
		return
	}
	rt.Check(d.byLine[b.Shard].AllGather(d.on.stream, d.ptr(b.Params), d.ptr(b.MyParams), b.Mine, typeOf(e)))
}

// Clear makes a part of the arena zero.
func (d *device) Clear(at, bytes int) {
	if bytes > 0 {
		rt.Check(d.on.stream.Fill(d.memory(at, bytes), 0))
	}
}

// suffixOf is how names of kernels end that work on a type.
func suffixOf(e rt.Elem) string {
	return [...]string{rt.F32: "f32", rt.F64: "f64", rt.BF16: "bf16", rt.F16: "f16"}[e]
}

// typeOf is the type as NCCL numbers it.
func typeOf(e rt.Elem) cuda.Type {
	return [...]cuda.Type{rt.F32: cuda.Float32, rt.F64: cuda.Float64, rt.BF16: cuda.BFloat16, rt.F16: cuda.Float16}[e]
}
