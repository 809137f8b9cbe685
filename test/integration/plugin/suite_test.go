// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plugin_test runs kubectl fleetgate as users do, against a real hub with a real gateway
// and two real members with their agents.
package plugin_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"fleetgate.io/fleetgate/test/support/artifacts"
	"fleetgate.io/fleetgate/test/support/env"
	"fleetgate.io/fleetgate/test/support/fleet"
	"fleetgate.io/fleetgate/test/support/program"
)

const first, second = "member-1", "member-2"

var running *fleet.Fleet

func TestPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("starts real API servers")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(45 * time.Second)
	SetDefaultEventuallyPollingInterval(200 * time.Millisecond)
	RunSpecs(t, "The kubectl plugin", Label("integration", "plugin"))
}

var _ = artifacts.OnFailure(func() []*env.Cluster { return running.Clusters() })

var _ = BeforeSuite(func(ctx SpecContext) {
	running = program.Fleet(ctx, fleet.Options{Members: []string{first, second}})
	Expect(running.AwaitAnswers(ctx, time.Minute)).To(Succeed())
	for _, member := range []string{first, second} {
		hub(ctx, "", "label", "membercluster", member, "name="+member)
	}
})

// plugin runs the plugin on the hub and fails the spec if it does not exit with 0.
func plugin(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, code, stderr := tries(ctx, args...)
	Expect(code).To(Equal(0), "kubectl fleetgate %s: %s%s", strings.Join(args, " "), out, stderr)
	return out
}

// tries runs the plugin and returns standard output, the exit code, and standard error.
func tries(ctx context.Context, args ...string) (out string, code int, stderr string) {
	command := exec.CommandContext(ctx, filepath.Join(running.BinDir, "kubectl-fleetgate"), append([]string{"--kubeconfig=" + running.HubKubeconfig()}, args...)...)
	command.Env = append(os.Environ(), "HOME="+running.Dir, "KUBECONFIG=")
	var stdout, beside strings.Builder
	command.Stdout, command.Stderr = &stdout, &beside
	err := command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return stdout.String(), exit.ExitCode(), beside.String()
	}
	Expect(err).NotTo(HaveOccurred())
	return stdout.String(), 0, beside.String()
}

// hub runs kubectl on the hub, onMember on a member.
func hub(ctx context.Context, input string, args ...string) string {
	GinkgoHelper()
	out, err := running.Kubectl(ctx, running.HubKubeconfig(), input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

func onMember(ctx context.Context, member, input string, args ...string) string {
	GinkgoHelper()
	out, err := running.Kubectl(ctx, adminOf(member), input, args...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// adminOf writes a kubeconfig of a member's administrator that does not use the hub.
func adminOf(member string) string {
	GinkgoHelper()
	for _, m := range running.Members {
		if m.Name == member {
			kubeconfig, err := m.Cluster.Kubeconfig("administrator", "system:masters")
			Expect(err).NotTo(HaveOccurred())
			return kubeconfig
		}
	}
	Fail("no member " + member)
	return ""
}

// says runs the plugin for Eventually and returns all its output.
func says(ctx context.Context, args ...string) func() string {
	return func() string {
		out, _, stderr := tries(ctx, args...)
		return out + stderr
	}
}
