package data

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"
)

// Files of other kinds are refused, whatever they are named, and never trained on as raw bytes.
func TestOtherKindsOfFileAreRefused(t *testing.T) {
	dir := t.TempDir()
	const text = "Once upon a time there was a compiler of plans.\n"
	words := func(order binary.AppendByteOrder, s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = order.AppendUint16(b, u)
		}
		return string(b)
	}
	tensors := string(binary.LittleEndian.AppendUint64(nil, 16)) + `{"w":{"dtype":1}}` + text
	const advice = "; write its text to a .txt file, or its tokens to a .bin file, 16 bits each"
	const tokens = "; write its tokens to a .bin file, 16 bits each"
	for _, tt := range []struct{ name, content, want string }{
		{"a.jsonl", `{"text": "Once"}` + "\n",
			"is named as JSON, and each byte of a text file is a token, including those of keys, quotes and braces; " +
				"convert its texts to tokens: planc data tokenize --tokenizer bytes DIR/a.jsonl -o data.bin; to " +
				"train on the JSON as it is, " +
				"give it a name that ends in .txt"},
		{"a.NDJSON", `{"text": "Once"}` + "\n",
			"is named as JSON, and each byte of a text file is a token, including those of keys, quotes and braces; " +
				"convert its texts to tokens: planc data tokenize --tokenizer bytes DIR/a.NDJSON -o data.bin; to " +
				"train on the JSON as it is, " +
				"give it a name that ends in .txt"},
		{"bom16.txt", "\xff\xfe" + words(binary.LittleEndian, text),
			"is text in UTF-16, but each byte of a text file is a token; convert it to UTF-8: iconv -f UTF-16 " +
				"-t UTF-8 " +
				"DIR/bom16.txt >data.txt"},
		{"bom16be.txt", "\xfe\xff" + words(binary.BigEndian, text),
			"is text in UTF-16, but each byte of a text file is a token; convert it to UTF-8: iconv -f UTF-16 " +
				"-t UTF-8 " +
				"DIR/bom16be.txt >data.txt"},
		{"bom32.txt", "\xff\xfe\x00\x00O\x00\x00\x00",
			"is text in UTF-32, but each byte of a text file is a token; convert it to UTF-8: iconv -f UTF-32 " +
				"-t UTF-8 " +
				"DIR/bom32.txt >data.txt"},
		{"le.txt", words(binary.LittleEndian, text),
			"has a 0 as every second byte, as UTF-16LE and 16-bit tokens have, but each byte of a text file is a " +
				"token; convert text to UTF-8: iconv -f UTF-16LE -t UTF-8 DIR/le.txt >data.txt; name a file " +
				"of 16-bit " +
				"tokens .bin"},
		{"be.txt", words(binary.BigEndian, text),
			"has a 0 as every second byte, as UTF-16BE and 16-bit tokens have, but each byte of a text file is a " +
				"token; convert text to UTF-8: iconv -f UTF-16BE -t UTF-8 DIR/be.txt >data.txt; name a file " +
				"of 16-bit " +
				"tokens .bin"},
		{"russian.txt", words(binary.LittleEndian,
			"Жил-был на свете один составитель планов, и было у него три сына. "),
			"has a 0 as every second byte, as UTF-16LE and 16-bit tokens have, but each byte of a text file is a " +
				"token; convert text to UTF-8: iconv -f UTF-16LE -t UTF-8 DIR/russian.txt >data.txt; name a file of " +
				"16-bit tokens .bin"},
		{"a.npy", "\x93NUMPY\x01\x00 and so on",
			"is a NumPy array, not text; write its tokens to a .bin file: " +
				"numpy.load(\"DIR/a.npy\").astype('uint16').tofile('tokens.bin')"},
		{"npy.bin", "\x93NUMPY\x01\x00 and so on",
			"is a NumPy array, not 16-bit tokens (nanoGPT's or llm.c's .bin); write its tokens to a .bin file: " +
				"numpy.load(\"DIR/npy.bin\").astype('uint16').tofile('tokens.bin')"},
		{"a.parquet", "PAR1\x15\x04", "is a Parquet table, not text; convert it: planc data tokenize " +
			"--tokenizer NAME DIR/a.parquet -o data.bin"},
		{"a.arrow", "\xff\xff\xff\xff\x10\x00\x00\x00\x00",
			"is an Arrow stream, as Hugging Face datasets are cached, not text" + advice},
		{"a.gz", "\x1f\x8b\x08 and so on", "is compressed by gzip, not text; unpack it: gzip -dk DIR/a.gz"},
		{"a.jsonl.zst", "\x28\xb5\x2f\xfd and so on",
			"is compressed by zstd, not text; unpack it: zstd -d DIR/a.jsonl.zst"},
		{"a.bz2", "BZh91AY&SY and so on", "is compressed by bzip2, not text; unpack it: bzip2 -dk DIR/a.bz2"},
		{"a.xz", "\xfd7zXZ\x00 and so on", "is compressed by xz, not text; unpack it: xz -dk DIR/a.xz"},
		{"a.pt", "PK\x03\x04 and so on", "is a zip archive, as PyTorch and NumPy save tensors in, not text" + tokens},
		{"a.tar", strings.Repeat("x", 257) + "ustar", "is a tar archive, not text; unpack it: tar -xf DIR/a.tar"},
		{"a.pkl", "\x80\x04\x95\x0f", "is a Python pickle, not text" + advice},
		{"a.h5", "\x89HDF\r\n\x1a\n", "is an HDF5 file, not text" + advice},
		{"text.bin", text, "seems to be text, but a .bin file is read as 16-bit tokens; give it a name that " +
			"ends in .txt"},
		{"oddtext.bin", text + "!", "seems to be text, but a .bin file is read as 16-bit tokens; give it a name that " +
			"ends in .txt"},
		{"a.idx", "MMIDIDX\x00\x00\x01",
			"is the index of a Megatron data set, not text; name its .bin file"},
		{"a.safetensors", tensors, "is a safetensors file, not text" + tokens},
		{"tensors.bin", tensors + "x", "is a safetensors file, not 16-bit tokens (nanoGPT's or llm.c's .bin)" + tokens},
	} {
		_, err := Open(Spec{Train: one(write(t, dir, tt.name, []byte(tt.content))), SeqLen: 4, Vocab: 50257})
		wantInputError(t, err, dir, "data: DIR/"+tt.name+" "+tt.want)
	}
}

// ints are tokens as integers of that many bytes.
func ints(bytes int, tokens ...int) (b []byte) {
	for _, v := range tokens {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(int64(v)))[:bytes]...)
	}
	return b
}

// Wider integers than 16 bits are found at any width, of any vocabulary, with marks of padding, and where a file begins
// with zeros; what 16 bits hold is not taken for them.
func TestWideIntegersAreRefused(t *testing.T) {
	dir := t.TempDir()
	draw := func(n, vocab int) (tokens []int) {
		for i := range n {
			tokens = append(tokens, (i*7919+i*i*31)%vocab)
		}
		return tokens
	}
	padded := append(make([]int, 4<<10), draw(64<<10, 50257)...)
	ignored := draw(400, 50257)
	ignored[7], ignored[99] = -100, -1
	const narrow = "numpy.fromfile(%q, 'int%d').astype('uint16').tofile('tokens.bin') writes 16-bit tokens"
	const wide = "some of them do not fit into 16 bits, so write 32-bit tokens after llm.c's header (kind " +
		"20240801, version 7)"
	for _, tt := range []struct {
		name    string
		content []byte
		bits    int // 0: they are read
		remedy  string
	}{
		{"gpt2-64.bin", ints(8, draw(400, 50257)...), 64, narrow},
		{"gpt2-32.bin", ints(4, draw(400, 50257)...), 32, narrow},
		{"chars-64.bin", ints(8, draw(400, 65)...), 64, narrow},
		{"chars-32.bin", ints(4, draw(400, 65)...), 32, narrow},
		{"dna-64.bin", ints(8, draw(400, 4)...), 64, narrow},
		{"dna-32.bin", ints(4, draw(400, 4)...), 32, narrow},
		{"llama-64.bin", ints(8, draw(400, 128256)...), 64, wide},
		{"llama-32.bin", ints(4, draw(400, 128256)...), 32, wide},
		{"ignored-64.bin", ints(8, ignored...), 64, narrow},
		{"ignored-32.bin", ints(4, ignored...), 32, narrow},
		{"padded-64.bin", ints(8, padded...), 64, narrow},
		{"padded-32.bin", ints(4, padded...), 32, narrow},
		{"gpt2-16.bin", ints(2, draw(400, 50257)...), 0, ""},
		{"chars-16.bin", ints(2, draw(400, 65)...), 0, ""},
		{"dna-16.bin", ints(2, draw(400, 4)...), 0, ""},
		{"padded-16.bin", ints(2, padded...), 0, ""},
		{"zeros-16.bin", ints(2, make([]int, 400)...), 0, ""},
	} {
		path := write(t, dir, tt.name, tt.content)
		s, err := Open(Spec{Train: one(path), SeqLen: 4, Vocab: 1 << 18})
		if tt.bits == 0 {
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			} else {
				s.Close()
			}
			continue
		}
		remedy := tt.remedy
		if remedy == narrow {
			remedy = fmt.Sprintf(narrow, "DIR/"+tt.name, tt.bits)
		}
		wantInputError(t, err, dir, fmt.Sprintf("data: DIR/%s seems to hold %d-bit integers, but a .bin file without "+
			"llm.c's header is read as 16-bit tokens; %s", tt.name, tt.bits, remedy))
	}
	_, err := Open(Spec{Train: one(write(t, dir, "tokens.i32", ints(4, draw(400, 50257)...))), SeqLen: 4, Vocab: 50257})
	wantInputError(t, err, dir, "data: DIR/tokens.i32 seems to hold 32-bit integers, but each byte of a file that is "+
		"not named .bin is a token; write its tokens to a .bin file, 16 bits each")
}

// Text in UTF-8, Latin-1 or of odd bytes is read; a few zero bytes do not make it another encoding.
func TestTextIsRead(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"utf8.txt": "Жил-был на свете один составитель планов", "bom8.txt": "\xef\xbb\xbfOnce upon a time",
		"latin1.txt": "caf\xe9 cr\xe8me br\xfbl\xe9e",
		"zeros.txt":  strings.Repeat("find . -print0\x00", 40), "allzeros.txt": strings.Repeat("\x00", 400),
		"noname":   "BZhang said: PK, GGUF and ustar",
		"json.txt": `{"text": "Once"}`,
	} {
		open(t, Spec{Train: one(write(t, dir, name, []byte(content))), SeqLen: 4, Vocab: 256})
	}
}

// A path that is no regular file is refused at once, by Resolve's caller and by whoever names it.
func TestFoldersAndDevicesAreRefused(t *testing.T) {
	if _, err := os.Stat("/dev/zero"); err != nil {
		t.Skip("no /dev/zero")
	}
	_, err := Open(Spec{Train: one("/dev/zero"), SeqLen: 4, Vocab: 256})
	wantInputError(t, err, "/nowhere", "data: /dev/zero is a device, not a file: data must be a regular file, "+
		"because it is read at arbitrary positions; copy the data to a file first: head -c BYTES /dev/zero >data.txt")
	dir := t.TempDir()
	_, err = Open(Spec{Train: one(dir), SeqLen: 4, Vocab: 256})
	wantInputError(t, err, dir, "data: DIR is a folder; name its files, for example DIR/*.bin")
	_, _, err = openFile(dir)
	wantInputError(t, err, dir, "data: DIR is a folder; name its files, for example DIR/*.bin")
}
