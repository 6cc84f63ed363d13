package main

// answer is plan and explain: the job's decision as a document or as a screen.
func (a *app) answer(args []string, f jobFlags, screen func(*document) string) error {
	return nil
}
