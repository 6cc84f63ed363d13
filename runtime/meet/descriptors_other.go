//go:build !unix

package meet

// descriptorLimit and descriptorsOpen are 0: this system does not say.
func descriptorLimit() int { return 0 }
func descriptorsOpen() int { return 0 }
