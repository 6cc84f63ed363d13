package shell

// locals has, for each function that runs, the values that its local variables hide; nil if it has no local variables.
type locals []map[string]*value

// hide keeps the value of a variable that becomes local to the function that runs.
func (l locals) hide(vars map[string]*value, name string) {
	last := len(l) - 1
	if last < 0 {
		return
	}
	if _, isHidden := l[last][name]; isHidden {
		return
	}
	if l[last] == nil {
		l[last] = map[string]*value{}
	}
	l[last][name] = vars[name]
	delete(vars, name)
}

// end ends a function: the variables that it has hidden have their values again.
func (l *locals) end(vars map[string]*value) {
	last := len(*l) - 1
	for name, v := range (*l)[last] {
		if v == nil {
			delete(vars, name)
			continue
		}
		vars[name] = v
	}
	*l = (*l)[:last]
}
