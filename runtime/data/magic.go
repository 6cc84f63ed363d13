package data

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
)

// headBytes is how much of the beginning of a file is read to detect its kind: up to the mark of a tar archive.
const headBytes = 512

// toText and toTokens say how to convert a table or an array.
const (
	toText   = "write its text to a .txt file, or its tokens to a .bin file, 16 bits each"
	toTokens = "write its tokens to a .bin file, 16 bits each"
)

// otherFiles are kinds of files that users wrongly pass as data: the bytes at an offset that identify them, and what
// to do. In remedy, %s is the file's path.
var otherFiles = []struct {
	at         int
	mark       string
	is, remedy string
}{
	{0, "\x93NUMPY", "a NumPy array", "write its tokens to a .bin file: " +
		"numpy.load(%q).astype('uint16').tofile('tokens.bin')"},
	{0, "PK\x03\x04", "a zip archive, as PyTorch and NumPy save tensors in", toTokens},
	{0, "\x1f\x8b\x08", "compressed by gzip", "unpack it: gzip -dk %s"},
	{0, "\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it: zstd -d %s"},
	{4, "1AY&SY", "compressed by bzip2", "unpack it: bzip2 -dk %s"},
	{0, "\xfd7zXZ\x00", "compressed by xz", "unpack it: xz -dk %s"},
	{0, "\x04\x22\x4d\x18", "compressed by lz4", "unpack it: lz4 -d %s"},
	{0, "PAR1", "a Parquet table", "convert it: planc data tokenize --tokenizer NAME %s -o data.bin"},
	{0, "ARROW1\x00\x00", "an Arrow table", toText},
	{0, "\xff\xff\xff\xff\x10\x00\x00\x00", "an Arrow stream, as Hugging Face datasets are cached", toText},
	{0, "MMIDIDX", "the index of a Megatron data set", "name its .bin file"},
	{0, "TNTIDX", "the index of a fairseq data set (not supported yet)", toTokens},
	{0, "\x89HDF\r\n\x1a\n", "an HDF5 file", toText},
	{0, "SQLite format 3\x00", "an SQLite database", toText},
	{0, "GGUF\x03\x00\x00\x00", "a GGUF model", "use a file of text or tokens"},
	{0, "\x80\x02", "a Python pickle", toText},
	{0, "\x80\x03", "a Python pickle", toText},
	{0, "\x80\x04\x95", "a Python pickle", toText},
	{0, "\x80\x05\x95", "a Python pickle", toText},
	{257, "ustar", "a tar archive", "unpack it: tar -xf %s"},
}

// otherFile refuses files of the kinds in otherFiles, and safetensors files, which begin with the length of a JSON
// object. A byte order mark shows that text is not UTF-8. In a .bin file, a mark of two bytes may be a token.
func otherFile(path string, head []byte, size int64, isBin bool) error {
	for _, o := range otherFiles {
		if isBin && len(o.mark) < 3 || len(head) < o.at || !strings.HasPrefix(string(head[o.at:]), o.mark) {
			continue
		}
		remedy := o.remedy
		if strings.Contains(remedy, "%") {
			remedy = fmt.Sprintf(remedy, path)
		}
		return badFile("is %s, not %s; %s", o.is, wanted(isBin), remedy)
	}
	if len(head) > 9 && head[8] == '{' && head[9] == '"' && binary.LittleEndian.Uint64(head) <= uint64(size) {
		return badFile("is a safetensors file, not %s; %s", wanted(isBin), toTokens)
	}
	if isBin {
		return nil
	}
	for _, e := range []struct{ mark, name string }{ // UTF-32 first, because its mark begins with UTF-16's
		{"\xff\xfe\x00\x00", "UTF-32"}, {"\x00\x00\xfe\xff", "UTF-32"}, {"\xff\xfe", "UTF-16"}, {"\xfe\xff", "UTF-16"},
	} {
		if strings.HasPrefix(string(head), e.mark) {
			return otherEncoding(path, e.name)
		}
	}
	return nil
}

// otherEncoding refuses text that is not UTF-8.
func otherEncoding(path, name string) error {
	return badFile("is text in %s, but each byte of a text file is a token; convert it to UTF-8: iconv -f %s -t UTF-8 "+
		"%s >data.txt",
		name, name, path)
}

// refusedName refuses files whose name shows that their raw bytes should not be trained on.
func refusedName(path string) error {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".jsonl", ".ndjson", ".json":
		return badFile("is named as JSON, and each byte of a text file is a token, including those of keys, "+
			"quotes and "+
			"braces; "+
			"convert its texts to tokens: planc data tokenize --tokenizer bytes %s -o data.bin; to train on the "+
			"JSON as it is, give it a name "+
			"that ends in .txt", path)
	}
	return nil
}

// wanted says what a data file must hold, by its name.
func wanted(isBin bool) string {
	if isBin {
		return "16-bit tokens (nanoGPT's or llm.c's .bin)"
	}
	return "text"
}
