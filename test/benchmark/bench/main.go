// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench is what `make bench` runs: it says on which machine, and runs the
// benchmarks of the groups that were asked for. What it prints is Go's benchmark
// format, for benchstat. It also stores the results as JSON, and draws a chart of each
// group beside its baselines.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	benchtime, timeout string
	// results is the folder for results and charts.
	results string
	count   int
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.benchtime, "benchtime", "1s", "How long each figure is measured: a duration, or 10x for ten rounds.")
	flags.StringVar(&o.timeout, "timeout", "60m", "How long all of it may take.")
	flags.StringVar(&o.results, "results", ".fleetgate/benchmark/results", "The folder for results.json and a chart of each group.")
	flags.IntVar(&o.count, "count", 1, "How often each figure is measured; benchstat wants at least 6.")
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: bench [flags] [GROUP...]\nGroups: %s\n", strings.Join(groups, ", "))
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	wanted, err := chosen(strings.Join(flags.Args(), " "))
	if err != nil {
		return err
	}
	found, err := findBenchmarks(os.DirFS("."))
	if err != nil {
		return fmt.Errorf("looking for benchmarks: %w", err)
	}
	plan := planOf(wanted, found)
	if len(plan.without) > 0 {
		fmt.Fprintln(os.Stderr, plan.sentence())
	}
	if len(plan.packages) == 0 {
		return nil
	}
	fmt.Println(machine())
	var output bytes.Buffer
	failure := measure(ctx, o, plan, io.MultiWriter(os.Stdout, &output))
	figures, err := parse(output.String(), machine())
	if err == nil {
		err = store(o.results, figures) // Those of the groups that did not fail.
	}
	return errors.Join(failure, err)
}

// measure runs the benchmarks, one after the other: go test does so with several
// packages, and builds them all before the first one runs.
func measure(ctx context.Context, o options, p plan, output io.Writer) error {
	args := []string{"test", "-run=^$", "-bench=" + p.pattern(), "-benchtime=" + o.benchtime,
		"-count=" + strconv.Itoa(o.count), "-timeout=" + o.timeout}
	command := exec.CommandContext(ctx, "go", append(args, p.packages...)...)
	command.Stdout, command.Stderr = output, os.Stderr
	// A group of its own: an interrupt then ends go and the program that it runs.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	err := command.Run()
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("the benchmarks of %s: %w", strings.Join(p.packages, ", "), err)
	}
	return nil
}
