package report

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// eventsPrefix starts the name of every event file of TensorBoard. The Unix time, the host and a number follow.
const eventsPrefix = "events.out.tfevents."

// Keys of the messages of an event file: field number<<3 | wire type, which is 0 for integers (TensorBoard 2.21,
// tensorboard/compat/proto/event.proto and summary.proto).
const (
	keyWallTime = 1<<3 | 1 // of Event: double, seconds since 1970
	keyStep     = 2 << 3   // of Event: int64
	keyVersion  = 3<<3 | 2 // of Event: string, only in the first event
	keySummary  = 5<<3 | 2 // of Event: Summary
	keySession  = 7<<3 | 2 // of Event: SessionLog
	keyStatus   = 1 << 3   // of SessionLog: 1 is START
	keyValue    = 1<<3 | 2 // of Summary: Value, repeated
	keyTag      = 1<<3 | 2 // of Value: string
	keyScalar   = 2<<3 | 5 // of Value: float
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// events writes the numbers of metrics.jsonl as scalars to an event file of TensorBoard, one file per attempt. A tag is
// the key of the number, or KEY/INDEX in a list.
type events struct {
	appender
	time time.Time
	step int
	// buffers, which keep their memory so that a step allocates nothing
	values  []byte // the Summary of the current line
	message []byte
	tag     []byte
	record  []byte
}

// open starts the file of an attempt that begins after a step. Readers drop what earlier attempts wrote for later
// steps, because the attempt repeats these.
func (e *events) open(dir string, attempt, step int) error {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	e.close() // that of before a rollback
	e.size = 0
	now := time.Now()
	name := fmt.Sprintf("%s%010d.%s.%d", eventsPrefix, now.Unix(), strings.ReplaceAll(host, "/", "_"), attempt)
	e.f, err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return fmt.Errorf("cannot open the TensorBoard events: %w; choose another folder with --log-dir", err)
	}
	e.begin(now, 0)
	write(e, keyVersion, "brain.Event:2")
	e.step = step + 1
	write(e, keySession, []byte{keyStatus, 1})
	return e.err
}

// begin starts the event of a line.
func (e *events) begin(t time.Time, step int) { e.time, e.step, e.values = t, step, e.values[:0] }

// scalar adds a number to the event. TensorBoard reads numbers that are not finite.
func (e *events) scalar(tag string, x float64) {
	e.tag = append(e.tag[:0], tag...)
	e.add(x)
}

// element adds a number of a list.
func (e *events) element(list string, i int, x float64) {
	e.tag = append(append(e.tag[:0], list...), '/')
	e.tag = strconv.AppendInt(e.tag, int64(i), 10)
	e.add(x)
}

// part adds a number of an object.
func (e *events) part(object, name string, x float64) {
	e.tag = append(append(append(e.tag[:0], object...), '/'), name...)
	e.add(x)
}

// add adds a number with the current tag.
func (e *events) add(x float64) {
	e.message = append(appendBytes(e.message[:0], keyTag, e.tag), keyScalar)
	e.message = binary.LittleEndian.AppendUint32(e.message, math.Float32bits(float32(x)))
	e.values = appendBytes(e.values, keyValue, e.message)
}

// end writes the event, if it has numbers.
func (e *events) end() {
	if len(e.values) > 0 {
		write(e, keySummary, e.values)
	}
}

// write appends the event with one field as a record: its length and itself, each followed by a masked CRC-32C
// (TensorFlow's tfrecord format, core/lib/io/record_writer.h).
func write[T string | []byte](e *events, key byte, field T) {
	e.message = append(e.message[:0], keyWallTime)
	e.message = binary.LittleEndian.AppendUint64(e.message, math.Float64bits(float64(e.time.UnixMicro())/1e6))
	e.message = binary.AppendUvarint(append(e.message, keyStep), uint64(e.step))
	e.message = appendBytes(e.message, key, field)

	e.record = binary.LittleEndian.AppendUint64(e.record[:0], uint64(len(e.message)))
	e.record = binary.LittleEndian.AppendUint32(e.record, maskedCRC(e.record))
	e.record = append(e.record, e.message...)
	e.record = binary.LittleEndian.AppendUint32(e.record, maskedCRC(e.message))
	e.append(e.record)
}

// maskedCRC returns the CRC-32C of b, rotated and with a constant added, as records store it.
func maskedCRC(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// appendBytes appends a field with a length to a message.
func appendBytes[T string | []byte](message []byte, key byte, value T) []byte {
	message = binary.AppendUvarint(append(message, key), uint64(len(value)))
	return append(message, value...)
}
