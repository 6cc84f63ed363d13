package megatron

// checkPairs reports options that Megatron-LM refuses because of another one.
// Source: Megatron-LM, megatron/training/arguments.py: validate_args.
func checkPairs(im *importer) {
	if im.dialect != plain {
		return
	}
	const positions, length = "max_position_embeddings", "seq_length"
	if n := im.s.number(length); im.s.has(positions) && im.s.has(length) && im.s.number(positions) < n {
		im.fail(positions, "%s %d is less than %s %d: use at least %d", im.name(positions), im.s.number(positions),
			im.name(length), n, n)
	}
	checkNeeds(im)
	checkRecomputeMethod(im)
	checkDuration(im)
	checkConnections(im)
}

// checkConnections refuses an environment variable that FSDP must not have.
func checkConnections(im *importer) {
	for _, dest := range []string{"use_megatron_fsdp", "use_torch_fsdp2"} {
		if im.s.flag(dest) && im.env[connectionsEnv] == "1" {
			im.diags.Addf(im.envPos(connectionsEnv), BadOption, "%s is 1, which Megatron-LM refuses with %s: remove "+
				"it, or use a larger number", connectionsEnv, im.name(dest))
		}
	}
}

// checkRecomputeMethod refuses a method of selective recomputation. --recompute-activations sets the granularity to
// selective even if the file says full.
func checkRecomputeMethod(im *importer) {
	const selective, granularity, method = "recompute_activations", "recompute_granularity", "recompute_method"
	isSelective := im.s.flag(selective) || im.s.text(granularity) == "selective"
	if im.isDump || !isSelective || !im.s.has(method) {
		return
	}
	if im.s.text(granularity) == "full" {
		im.fail(selective, "%s sets %s selective, which has no %s: remove %s to recompute fully", im.name(selective),
			im.name(granularity), im.name(method), im.name(selective))
		return
	}
	im.fail(method, "selective recomputation has no %s: remove it", im.name(method))
}

// checkDuration refuses a run whose duration is given both in steps and in samples. The arguments that a run prints
// have both, because Megatron-LM computes the steps.
func checkDuration(im *importer) {
	const steps, samples = "train_iters", "train_samples"
	if !im.isDump && im.s.has(samples) && im.s.has(steps) && im.s.number(steps) != 0 {
		im.fail(samples, "%s and %s exclude each other: remove one", im.name(samples), im.name(steps))
	}
}
