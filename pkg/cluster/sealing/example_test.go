// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sealing_test

import (
	"errors"
	"fmt"

	"fleetgate.io/fleetgate/pkg/cluster/sealing"
)

func ExampleSeal() {
	agent, err := sealing.NewKey()
	if err != nil {
		fmt.Println(err)
		return
	}
	sealed, err := sealing.Seal(sealing.Credential{Member: "edge", Token: "secret"}, agent.PublicKey(), "uid-of-the-request", "client-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	credential, err := agent.Open(sealed, "uid-of-the-request", "client-1")
	fmt.Println(err, credential.Member)
	_, err = agent.Open(sealed, "uid-of-another-request", "client-1")
	fmt.Println(errors.Is(err, sealing.ErrSealed))
	// Output:
	// <nil> edge
	// true
}
