package kernels

// Buckets sorts the positions of ids by id for embed_grad. Bucket b belongs to row rows[b] of the table's
// part, which has the ids lo to lo+n-1, and contains the positions order[starts[b]:starts[b+1]], in order.
// Ids outside the part are in no bucket. Rows ascend; len(starts) is len(rows)+1.
func Buckets(ids []int32, lo, n int) (rows, starts, order []int32) {
	next := make([]int32, n+1) // index of each row's next position
	for _, id := range ids {
		if r := int(id) - lo; uint(r) < uint(n) {
			next[r]++
		}
	}
	sum := int32(0)
	starts = []int32{0}
	for r, count := range next {
		next[r] = sum
		sum += count
		if count > 0 {
			rows, starts = append(rows, int32(r)), append(starts, sum)
		}
	}
	order = make([]int32, sum)
	for i, id := range ids {
		if r := int(id) - lo; uint(r) < uint(n) {
			order[next[r]] = int32(i)
			next[r]++
		}
	}
	return rows, starts, order
}
