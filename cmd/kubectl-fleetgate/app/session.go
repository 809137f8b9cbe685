// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	"fleetgate.io/fleetgate/pkg/apiserver/memberconfig"
	"fleetgate.io/fleetgate/pkg/inspect/overview"
)

// pollInterval is how often a waiting command checks its condition.
const pollInterval = 500 * time.Millisecond

// patience is how long a command waits before it prints what it waits for.
const patience = 2 * time.Second

// completionTimeout limits how long shell completion waits for the hub.
const completionTimeout = 3 * time.Second

// session is one invocation of the plugin.
type session struct {
	genericiooptions.IOStreams
	Clock clock.Clock
	flags *genericclioptions.ConfigFlags
}

// hub connects to the hub. If `use` created the current context, that is the hub from which it was
// created, so that the plugin's own commands keep working on the hub.
func (s *session) hub() (*overview.Hub, error) {
	if err := s.chooseHub(); err != nil {
		return nil, err
	}
	return overview.Connect(s.flags)
}

// chooseHub sets --context if the current context was created by `use`.
func (s *session) chooseHub() error {
	if *s.flags.Context != "" {
		return nil
	}
	own, err := s.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("reading your kubeconfig: %w", err)
	}
	current, ok := own.Contexts[own.CurrentContext]
	if !ok {
		return nil // Connecting returns the error.
	}
	if from := madeFrom(current); from != "" {
		// ConfigFlags cache what they have loaded, so another context needs a copy.
		s.flags = s.copyFlags()
		s.flags.Context = &from
		return nil
	}
	if cluster := own.Clusters[current.Cluster]; cluster != nil && memberconfig.LeadsToMember(cluster.Server) {
		return fmt.Errorf("context %q points to a member: set --context to a context of the hub", own.CurrentContext)
	}
	return nil
}

// copyFlags copies the user's flags for another connection.
func (s *session) copyFlags() *genericclioptions.ConfigFlags {
	own := s.flags
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(s.IOStreams)
	flags.CacheDir, flags.KubeConfig, flags.ClusterName, flags.AuthInfoName, flags.Context = own.CacheDir, own.KubeConfig, own.ClusterName, own.AuthInfoName, own.Context
	flags.Namespace, flags.APIServer, flags.TLSServerName, flags.Insecure = own.Namespace, own.APIServer, own.TLSServerName, own.Insecure
	flags.CertFile, flags.KeyFile, flags.CAFile, flags.BearerToken = own.CertFile, own.KeyFile, own.CAFile, own.BearerToken
	flags.Impersonate, flags.ImpersonateUID, flags.ImpersonateGroup, flags.ImpersonateUserExtra = own.Impersonate, own.ImpersonateUID, own.ImpersonateGroup, own.ImpersonateUserExtra
	flags.Timeout, flags.DisableCompression, flags.ProxyURL = own.Timeout, own.DisableCompression, own.ProxyURL
	return flags
}

// extensionMadeFrom is the extension of contexts that `use` creates. It names the hub's context.
const extensionMadeFrom = "fleetgate.io/made-from"

// madeFrom is the hub's context of a context that `use` has created, and empty for others.
func madeFrom(of *clientcmdapi.Context) string {
	raw, ok := of.Extensions[extensionMadeFrom].(*runtime.Unknown)
	if !ok {
		return ""
	}
	var entry struct {
		Context string `json:"context"`
	}
	if json.Unmarshal(raw.Raw, &entry) != nil {
		return ""
	}
	return entry.Context
}

// await polls until done. After two seconds, and whenever it changes, it prints what it waits for.
// It retries requests that the hub temporarily does not answer.
func (s *session) await(ctx context.Context, timeout time.Duration, done func(context.Context) (ok bool, waitsFor string, err error)) error {
	started, last := s.Clock.Now(), ""
	for {
		ok, waitsFor, err := done(ctx)
		if err != nil && ctx.Err() == nil && overview.IsTemporary(err) {
			waitsFor, err = "the hub is not responding: "+err.Error(), nil
		}
		if ok || err != nil {
			return err
		}
		waited := s.Clock.Since(started)
		if waited >= timeout {
			return fmt.Errorf("timed out after %s: %s", timeout, waitsFor)
		}
		if waited > patience && waitsFor != last {
			s.note("%s\n", waitsFor)
			last = waitsFor
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Clock.After(pollInterval):
		}
	}
}

// patiently reads. If that takes longer than patience, it prints that it waits for the hub.
func (s *session) patiently(ctx context.Context, read func(context.Context) error) error {
	done := make(chan error, 1)
	go func() { done <- read(ctx) }()
	select {
	case err := <-done:
		return err
	case <-s.Clock.After(patience):
		s.note("Waiting for the hub to respond.\n")
		return <-done
	}
}

// say prints results to standard output, note prints progress to standard error.
func (s *session) printf(format string, args ...any) { printTo(s.Out, format, args...) }
func (s *session) note(format string, args ...any)   { printTo(s.ErrOut, format, args...) }

// printTo ignores errors of the terminal: there is nowhere to report them.
func printTo(out io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(out, format, args...) }

// onHub returns a RunE that connects to the hub first.
func (s *session) onHub(do func(ctx context.Context, h *overview.Hub, args []string) error) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, args []string) error {
		h, err := s.hub()
		if err != nil {
			return err
		}
		return do(command.Context(), h, args)
	}
}

// completeNames completes the first argument, or all arguments with many, with names from the hub.
func (s *session) completeNames(many bool, names func(context.Context, *overview.Hub) ([]string, error)) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !many {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTimeout)
		defer cancel()
		h, err := s.hub()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		found, err := names(ctx, h)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func memberNames(ctx context.Context, h *overview.Hub) ([]string, error) {
	return h.Names(ctx, memberKind(), "")
}

func memberKind() schema.GroupVersionKind {
	return clusterv1beta1.GroupVersion.WithKind("MemberCluster")
}

func placementNames(ctx context.Context, h *overview.Hub) ([]string, error) {
	return h.PlacementNames(ctx)
}
