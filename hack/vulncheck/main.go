// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vulncheck runs govulncheck if its database is reachable, and otherwise says so and
// succeeds, so that a missing network does not block every change. It checks before govulncheck is
// compiled.
//
// Usage: vulncheck COMMAND [ARG...], where COMMAND runs govulncheck. GOVULNDB is the URL of
// another database than Go's own, as for govulncheck.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// patience bounds the response time of the database.
const patience = 15 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database := os.Getenv("GOVULNDB")
	if database == "" {
		database = "https://vuln.go.dev"
	}
	err := run(ctx, database, os.Args[1:], os.Stdout, os.Stderr)
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		os.Exit(failed.ExitCode())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "vulncheck:", err)
		os.Exit(1)
	}
}

// run runs the command. Its exit code is returned.
func run(ctx context.Context, database string, command []string, out, problems io.Writer) error {
	if len(command) == 0 {
		return errors.New("say which command runs govulncheck")
	}
	if err := reach(ctx, database); err != nil {
		_, err := fmt.Fprintf(problems, "NOT CHECKED for known vulnerabilities: the database cannot be reached from here: %v\n", err)
		return err
	}
	check := exec.CommandContext(ctx, command[0], command[1:]...)
	check.Stdout, check.Stderr = out, problems
	return check.Run()
}

// reach requests the file with the database's modification time. Addresses that are not http or
// https are left to govulncheck.
func reach(ctx context.Context, database string) error {
	if !strings.HasPrefix(database, "http") {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(database, "/")+"/index/db.json", nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	return nil
}
