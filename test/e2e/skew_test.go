// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/env"
)

// versions are those that differ in this run from what was built here.
type versions struct {
	// program is gateway or agent, older its binary of the previous release. Empty: both
	// are built here.
	program, older string
}

// skew is set before any spec runs.
var skew versions

// FLEETGATE_SKEW=agent runs everything with agents of the previous release, and
// FLEETGATE_SKEW=gateway with its gateway.
var _ = BeforeSuite(func(ctx SpecContext) {
	program := os.Getenv("FLEETGATE_SKEW")
	if program == "" {
		return
	}
	Expect(program).To(BeElementOf("gateway", "agent"), "FLEETGATE_SKEW")
	revision := previousRevision(ctx)
	if revision == "" {
		Skip("No release before this commit is tagged: say with FLEETGATE_PREVIOUS which commit the older " + program + " is of")
	}
	skew = versions{program: program, older: buildRevision(ctx, revision, program)}
})

// flags are those of the launcher that choose programs and versions.
func (v versions) flags() []string {
	var flags []string
	if v.program != "" {
		flags = append(flags, "-"+v.program+"="+v.older)
	}
	// Folders with the programs of another minor version of Kubernetes.
	for flag, variable := range map[string]string{"-hub-bin=": "FLEETGATE_HUB_BIN", "-member-bin=": "FLEETGATE_MEMBER_BIN"} {
		if folder := os.Getenv(variable); folder != "" {
			flags = append(flags, flag+folder)
		}
	}
	return flags
}

// previousRevision is FLEETGATE_PREVIOUS, or the newest release that is older than what is
// checked out, or nothing.
func previousRevision(ctx context.Context) string {
	GinkgoHelper()
	if revision := os.Getenv("FLEETGATE_PREVIOUS"); revision != "" {
		return revision
	}
	tags := strings.Fields(inProject(ctx, "git tag --list 'v*' --merged HEAD --no-contains HEAD --sort=-version:refname"))
	if len(tags) == 0 {
		return ""
	}
	return tags[0]
}

// buildRevision builds a program as it was, and returns where it is.
func buildRevision(ctx context.Context, revision, program string) string {
	GinkgoHelper()
	dir, err := os.MkdirTemp("", "fleetgate-previous-")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, dir)
	inProject(ctx, `git archive "$1" | tar --extract --directory="$2"`, revision, dir)
	path := filepath.Join(dir, program)
	inProject(ctx, `cd "$1" && go build -o "$2" "./cmd/$3"`, dir, path, program)
	GinkgoWriter.Printf("The %s is of %s\n", program, revision)
	return path
}

// inProject runs a line of shell in the project's folder, and returns what it prints.
func inProject(ctx context.Context, line string, args ...string) string {
	GinkgoHelper()
	home, err := env.Home()
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, "bash", append([]string{"-euo", "pipefail", "-c", line, "bash"}, args...)...)
	command.Dir, command.Stderr = filepath.Dir(home), GinkgoWriter
	out, err := command.Output()
	Expect(err).NotTo(HaveOccurred(), line)
	return string(out)
}
