// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package refusal_test

import (
	"errors"
	"fmt"

	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// join registers a member. Its error may be a refusal or a failure.
func join(member string, reachable bool) error {
	if !reachable {
		return errors.New("the hub does not answer")
	}
	if len(member) > 8 {
		return refusal.New("NameTooLong", "member %q has a name of more than 8 letters: register it by another", member)
	}
	return nil
}

func ExampleOf() {
	for _, reachable := range []bool{true, false} {
		err := fmt.Errorf("joining: %w", join("amsterdam-1", reachable))
		if no := refusal.Of(err); no != nil {
			fmt.Printf("condition %s: %s\n", no.Reason, no.Message)
			continue
		}
		fmt.Printf("try again: %v\n", err)
	}
	// Output:
	// condition NameTooLong: member "amsterdam-1" has a name of more than 8 letters: register it by another
	// try again: joining: the hub does not answer
}
