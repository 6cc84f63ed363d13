package runtime

// largePage is the size of a large page of the machines that have one of a few MiB: x86-64's and the usual one of arm64. With the
// usual 4 KiB, an arena of gigabytes has more pages than a core remembers the places of, and its first touch costs a fault for each.
const largePage = 2 << 20
