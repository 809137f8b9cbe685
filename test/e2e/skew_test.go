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

	"fleetgate.io/fleetgate/test/support/env"
)

// versions are the programs of this run that were not built from this commit.
type versions struct {
	// program is gateway or agent, older its binary of the previous release. If empty, both are
	// built here.
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

// flags are the launcher's flags that choose programs and versions.
func (v versions) flags() []string {
	var flags []string
	if v.program != "" {
		flags = append(flags, "-"+v.program+"="+v.older)
	}
	// These are directories with the programs of another Kubernetes minor version.
	for flag, variable := range map[string]string{"-hub-bin=": "FLEETGATE_HUB_BIN", "-member-bin=": "FLEETGATE_MEMBER_BIN"} {
		if folder := os.Getenv(variable); folder != "" {
			flags = append(flags, flag+folder)
		}
	}
	return flags
}

// previousRevision returns FLEETGATE_PREVIOUS, or the newest release before the current commit, or
// an empty string.
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

// buildRevision builds a program of a revision and returns its path.
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

// inProject runs a shell line in the project's directory and returns the output.
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
