// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl is Kubernetes' own, of the version that the module's file requires: go.mod
// the oldest that docs/versions.md names, middle.mod one between that and today's.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() {
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
