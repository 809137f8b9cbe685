// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl is Kubernetes' own, of the oldest version that docs/reference/operations.md names: its
// module requires it.
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
