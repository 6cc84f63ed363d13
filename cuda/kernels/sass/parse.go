package sass

import (
	"regexp"
	"strconv"
	"strings"
)

// Function is the machine code of a kernel.
type Function struct {
	Name string
	Code []Instruction
}

// Instruction is an instruction: its address in bytes, its name with all suffixes, and the address to which it
// branches, -1 if it is no branch.
type Instruction struct {
	Address int
	Name    string
	Target  int
}

var instructionLine = regexp.MustCompile(`^\s*/\*([0-9a-f]+)\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)([^;]*);`)

// Parse reads the functions that cuobjdump -sass prints.
func Parse(text string) (all []Function) {
	for line := range strings.Lines(text) {
		_, name, found := strings.Cut(line, "Function : ")
		if found {
			all = append(all, Function{Name: strings.TrimSpace(name)})
			continue
		}
		m := instructionLine.FindStringSubmatch(line)
		if m == nil || len(all) == 0 {
			continue
		}
		f := &all[len(all)-1]
		f.Code = append(f.Code, Instruction{Address: number(m[1]), Name: m[2], Target: target(m[2], m[3])})
	}
	return all
}

// target returns the address to which an instruction branches, or -1.
func target(name, operands string) int {
	if name != "BRA" && !strings.HasPrefix(name, "BRA.U") {
		return -1
	}
	fields := strings.Fields(operands)
	if len(fields) == 0 {
		return -1
	}
	digits, found := strings.CutPrefix(fields[len(fields)-1], "0x")
	if !found {
		return -1
	}
	return number(digits)
}

// number returns the value of hexadecimal digits, or -1.
func number(digits string) int {
	n, err := strconv.ParseInt(digits, 16, 64)
	if err != nil {
		return -1
	}
	return int(n)
}

// isStore, isGlobal, isWide, isNarrow, isLocal and isMatMul classify instructions by their names: stores to global
// memory, all accesses to it, those of 16 and of 2 bytes, accesses to spilled registers, tensor core instructions.
func (i *Instruction) isStore() bool {
	return strings.HasPrefix(i.Name, "STG.") || strings.HasPrefix(i.Name, "ST.")
}

func (i *Instruction) isGlobal() bool {
	return i.isStore() || strings.HasPrefix(i.Name, "LDG.") || strings.HasPrefix(i.Name, "LD.")
}

func (i *Instruction) isWide() bool { return i.isGlobal() && strings.Contains(i.Name, ".128") }

func (i *Instruction) isNarrow() bool { return i.isStore() && strings.HasSuffix(i.Name, ".U16") }

func (i *Instruction) isLocal() bool {
	return strings.HasPrefix(i.Name, "LDL") || strings.HasPrefix(i.Name, "STL")
}

func (i *Instruction) isMatMul() bool { return strings.HasPrefix(i.Name, "HMMA") }
