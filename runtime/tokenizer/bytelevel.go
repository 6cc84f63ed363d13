package tokenizer

// byteRunes are the characters that stand for bytes in the vocabularies of byte-level BPE: printable characters of
// Latin-1 for themselves, the others from U+0100 on.
var byteRunes = func() (runes [256]rune) {
	next := rune(0x100)
	for c := range rune(256) {
		if '!' <= c && c <= '~' || '¡' <= c && c <= '¬' || '®' <= c && c <= 'ÿ' {
			runes[c] = c
			continue
		}
		runes[c] = next
		next++
	}
	return runes
}()

// runeBytes is the inverse of byteRunes.
var runeBytes = func() map[rune]byte {
	all := map[rune]byte{}
	for c, r := range byteRunes {
		all[r] = byte(c)
	}
	return all
}()

// byteText returns the bytes that a token's characters stand for, or its text if they do not stand for bytes.
func byteText(word string) []byte {
	text := make([]byte, 0, len(word))
	for _, r := range word {
		c, ok := runeBytes[r]
		if !ok {
			return []byte(word)
		}
		text = append(text, c)
	}
	return text
}
