// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted_test

import (
	"encoding/base64"
	"errors"
	"fmt"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

func ExampleUnmarshal() {
	var values struct {
		Replicas int `json:"replicas"`
	}
	if err := untrusted.Unmarshal([]byte("replicas: 3"), untrusted.Object, &values); err != nil {
		fmt.Println(err)
	}
	fmt.Println(values.Replicas)

	// A few lines that would expand to a million strings.
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'h'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	var limit *untrusted.LimitError
	fmt.Println(errors.As(untrusted.Unmarshal([]byte(bomb), untrusted.Object, &values), &limit))
	// Output:
	// 3
	// true
}

func ExampleClaims() {
	token := "e30." + base64.RawURLEncoding.EncodeToString([]byte(`{"sub":"system:serviceaccount:shop:deployer"}`)) + ".c2ln"
	var claims struct {
		Subject string `json:"sub"`
	}
	fmt.Println(untrusted.Claims(token, &claims), claims.Subject)
	fmt.Println(errors.Is(untrusted.Claims("secret", &claims), untrusted.ErrNoJWT))
	// Output:
	// <nil> system:serviceaccount:shop:deployer
	// true
}
