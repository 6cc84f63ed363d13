// Command ncclfit fits the constants of the communication model (costmodel.NCCL, and the latencies of two networks in
// the catalogue) to published measurements, and writes the tables of docs/communication.md.
//
//	go run ./ncclfit            in tools/: prints the constants and the residuals
//	go run ./ncclfit -update    also writes the page's tables
//
// The rows are in rows.csv, each with its source. Start with platforms, the clusters on which rows were measured; then
// params, the fitted constants; then report. The model itself is in package costmodel, which prices the rows.
package main
