//go:build cuda && linux

package gpu

import (
	"github.com/planc-dev/planc/cuda"
	rt "github.com/planc-dev/planc/runtime"
)

// jobKinds is the number of kinds of jobs that a bucket has.
const jobKinds = 4

// launchJob enqueues a job of each kind on the bucket stream.
var launchJob = [jobKinds]func(*communication, *rt.BucketPart){
	rt.Reducing: (*communication).reduce, rt.Scattering: (*communication).scatter,
	rt.Gathering: (*communication).gather,
	rt.Fetching:  (*communication).gather,
}

// Start launches a job of a bucket, concurrently with the work that follows.
func (d *communication) Start(bucket int, job rt.Job) {
	b := d.rank.BucketPart(bucket)
	d.bucketWork.after(d.compute)
	d.current = d.bucketWork
	launchJob[job](d, &b)
	d.current = d.compute
	done := &d.jobs[bucket][job]
	if *done == nil {
		var err error
		*done, err = cuda.NewEvent(false)
		rt.Check(err)
	}
	rt.Check(d.bucketWork.stream.Record(*done))
}

// Wait makes the work that follows wait for the job.
func (d *communication) Wait(bucket int, job rt.Job) {
	rt.Check(d.compute.stream.Wait(d.jobs[bucket][job]))
}

// wire describes gradients as they are sent: in place, or a copy in a narrower type.
type wire struct {
	at   cuda.Pointer
	elem rt.Elem
}

// castToWire returns n gradients in the type in which they are sent, rounded into a copy if they are stored
// in another type.
func (d *communication) castToWire(at, n int) wire {
	t := d.rank.Program.TensorTypes()
	if t.Reduce == t.Grads {
		return wire{d.ptr(at), t.Grads}
	}
	w := wire{d.scratch(n * t.Reduce.Size()), t.Reduce}
	d.cast(w.at, d.ptr(at), t.Reduce, t.Grads, n)
	return w
}

// castFromWire writes the wire's n sums, from element first on, back to where the gradients are stored.
func (d *communication) castFromWire(w wire, first, at, n int) {
	if t := d.rank.Program.TensorTypes(); w.elem != t.Grads {
		d.cast(d.ptr(at), w.element(first), t.Grads, w.elem, n)
	}
}

// element returns the address of the wire's element i.
func (w wire) element(i int) cuda.Pointer { return w.at + cuda.Pointer(i*w.elem.Size()) }

// cast rounds n numbers from one type to another.
func (d *executor) cast(to, from cuda.Pointer, toElem, fromElem rt.Elem, n int) {
	d.run("cast", suffixOf(toElem)+"_"+suffixOf(fromElem), 1, n, d.args().Pointer(to).Pointer(from).Uint64(uint64(n)))
}

// reduce sums a bucket's gradients over the replicas, as [rt.StartReduce] specifies.
func (d *communication) reduce(b *rt.BucketPart) {
	at, n, first := b.Grads, b.Elems, b.First
	if b.ShardedGrads {
		at, n, first = b.MyGrads, b.Mine, 0
	}
	w := d.castToWire(at, n)
	for _, line := range []string{b.Reduce, b.FirstLast} {
		d.sum(line, w.at, n, w.elem)
	}
	switch {
	case b.ShardedGrads || b.Shard == "":
		first, b.Mine = 0, n // there are no other shards
	default:
		comm := d.commByLine[b.Shard]
		rt.Check(comm.ReduceScatter(d.current.stream, w.element(first), w.at, b.Mine, typeOf(w.elem)))
		at = b.MyGrads
	}
	d.sum(b.Sum, w.element(first), b.Mine, w.elem)
	d.castFromWire(w, first, at, b.Mine)
}

// sum all-reduces n numbers over a line. It does nothing if line is empty.
func (d *communication) sum(line string, at cuda.Pointer, n int, e rt.Elem) {
	if line != "" {
		rt.Check(d.commByLine[line].AllReduce(d.current.stream, at, at, n, typeOf(e), cuda.Sum))
	}
}

// scatter reduce-scatters a micro-batch's gradients of a bucket, and adds this rank's shard to its
// accumulated gradients.
func (d *communication) scatter(b *rt.BucketPart) {
	elem := d.rank.Program.TensorTypes().Grads
	w := wire{d.ptr(b.Grads), elem}
	if b.Shard != "" {
		w = d.castToWire(b.Grads, b.Elems)
		rt.Check(d.commByLine[b.Shard].ReduceScatter(d.current.stream, w.element(b.First), w.at, b.Mine,
			typeOf(w.elem)))
	}
	d.run("accumulate", suffixOf(elem)+"_"+suffixOf(w.elem), 1, b.Mine,
		d.args().Pointer(d.ptr(b.MyGrads)).Pointer(w.element(b.First)).Uint64(uint64(b.Mine)))
}

// gather all-gathers a bucket's parameters.
func (d *communication) gather(b *rt.BucketPart) {
	e := d.rank.Program.TensorTypes().Params
	if b.Shard == "" {
		if n := b.Elems * e.Size(); b.Params != b.MyParams {
			rt.Check(d.current.stream.Copy(d.memory(b.Params, n), d.memory(b.MyParams, n)))
		}
		return
	}
	rt.Check(d.commByLine[b.Shard].AllGather(d.current.stream, d.ptr(b.Params), d.ptr(b.MyParams), b.Mine, typeOf(e)))
}

// Clear sets a part of the arena to zero.
func (d *executor) Clear(at, bytes int) {
	if bytes > 0 {
		rt.Check(d.current.stream.Fill(d.memory(at, bytes), 0))
	}
}

// suffixOf returns the suffix of the names of kernels that work on a type.
func suffixOf(e rt.Elem) string {
	return [...]string{rt.F32: "f32", rt.F64: "f64", rt.BF16: "bf16", rt.F16: "f16"}[e]
}

// typeOf returns NCCL's number of a type.
func typeOf(e rt.Elem) cuda.Type {
	return [...]cuda.Type{rt.F32: cuda.Float32, rt.F64: cuda.Float64, rt.BF16: cuda.BFloat16, rt.F16: cuda.Float16}[e]
}
