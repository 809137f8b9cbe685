// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
	"fleetgate.io/fleetgate/pkg/webhook/capz"
	"fleetgate.io/fleetgate/pkg/webhook/immutability"
)

// maxPolicyBytes limits the size of a file of policies.
const maxPolicyBytes = 4 << 20

// newPolicyCommand returns the commands for policies, which need no hub.
func newPolicyCommand() *cobra.Command {
	command := &cobra.Command{
		Use:          "policy",
		Short:        "Print ImmutabilityPolicies, or export them as ValidatingAdmissionPolicies",
		SilenceUsage: true,
	}
	var file string
	export := &cobra.Command{
		Use:   "export -f FILE",
		Short: "Print policies as ValidatingAdmissionPolicies with their bindings",
		Long: `Print the ImmutabilityPolicies of a file as ValidatingAdmissionPolicies with their
bindings. The API server enforces them without the gateway. A policy with lookups
or guards cannot be exported: the command then fails, names the policy and prints
nothing.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return exportPolicies(command, file) },
	}
	export.Flags().StringVarP(&file, "filename", "f", "-", "File with ImmutabilityPolicies in YAML or JSON, or - for standard input.")
	pack := &cobra.Command{
		Use:   "pack capz",
		Short: "Print a policy pack that is part of the gateway",
		Long: `Print a policy pack, to apply it to the hub:

  gateway policy pack capz | kubectl apply -f -

The pack capz covers the kinds of the Cluster API provider for Azure (CAPZ).`,
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"capz"},
		RunE: func(command *cobra.Command, _ []string) error {
			manifest, err := capz.Manifest()
			if err != nil {
				return err
			}
			_, err = command.OutOrStdout().Write(manifest)
			return err
		},
	}
	command.AddCommand(export, pack)
	return command
}

func exportPolicies(command *cobra.Command, file string) error {
	content, err := readBounded(command, file)
	if err != nil {
		return err
	}
	policies, err := parsePolicies(content)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	compiler, err := immutability.NewCompiler()
	if err != nil {
		return err
	}
	var out bytes.Buffer
	var failures []error
	for _, policy := range policies {
		if _, problems := compiler.Compile(policy, true); len(problems) > 0 {
			failures = append(failures, fmt.Errorf("policy %s: %w", policy.Name, problems.ToAggregate()))
			continue
		}
		exported, binding, err := immutability.Export(policy)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, object := range []any{exported, binding} {
			text, err := yaml.Marshal(object)
			if err != nil {
				return fmt.Errorf("writing policy %s: %w", policy.Name, err)
			}
			fmt.Fprintf(&out, "---\n%s", text)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	_, err = out.WriteTo(command.OutOrStdout())
	return err
}

func readBounded(command *cobra.Command, file string) ([]byte, error) {
	in := command.InOrStdin()
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer opened.Close()
		in = opened
	}
	content, err := io.ReadAll(io.LimitReader(in, maxPolicyBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	if len(content) > maxPolicyBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", file, maxPolicyBytes)
	}
	return content, nil
}

func parsePolicies(content []byte) ([]*admissionv1alpha1.ImmutabilityPolicy, error) {
	var policies []*admissionv1alpha1.ImmutabilityPolicy
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return policies, nil
		}
		policy := &admissionv1alpha1.ImmutabilityPolicy{}
		if err == nil {
			err = untrusted.Unmarshal(document, untrusted.File, policy)
		}
		if err != nil {
			return nil, err
		}
		if policy.Kind == "" && policy.Name == "" {
			continue // A document of comments only.
		}
		if policy.Kind != "ImmutabilityPolicy" || policy.APIVersion != admissionv1alpha1.GroupVersion.String() {
			return nil, fmt.Errorf("%s %q is not an ImmutabilityPolicy of %s", policy.Kind, policy.Name, admissionv1alpha1.GroupVersion)
		}
		policies = append(policies, policy)
	}
}
