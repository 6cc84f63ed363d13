// Command ncclfit fits the constants of the communication model (costmodel.NCCL, and the latencies of two networks in
// the catalogue) to published measurements, and writes the tables of docs/communication.md.
//
//	go run ./ncclfit            in tools/: prints the constants and the residuals
//	go run ./ncclfit -update    writes the page's tables, too
//
// Rows are in rows.csv, each with its source. Begin with platforms, which says on what cluster each row was measured;
// then params, which are fitted; then report. The model itself is package costmodel's, whose code prices the rows.
package main
