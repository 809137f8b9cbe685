// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package capz

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	admissionv1alpha1 "fleetgate.io/fleetgate/pkg/apis/admission/v1alpha1"
)

//go:embed policies/*.yaml
var files embed.FS

// Policies returns the pack, ready to apply.
func Policies() ([]*admissionv1alpha1.ImmutabilityPolicy, error) {
	var policies []*admissionv1alpha1.ImmutabilityPolicy
	err := each(func(name string, content []byte) error {
		policy := &admissionv1alpha1.ImmutabilityPolicy{}
		if err := yaml.UnmarshalStrict(content, policy); err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		policies = append(policies, policy)
		return nil
	})
	return policies, err
}

// Manifest returns the pack as one YAML text.
func Manifest() ([]byte, error) {
	var all bytes.Buffer
	err := each(func(_ string, content []byte) error {
		all.WriteString("---\n")
		all.Write(content)
		return nil
	})
	return all.Bytes(), err
}

func each(do func(name string, content []byte) error) error {
	names, err := fs.Glob(files, "policies/*.yaml")
	if err != nil {
		return err
	}
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		if err := do(name, content); err != nil {
			return err
		}
	}
	return nil
}
