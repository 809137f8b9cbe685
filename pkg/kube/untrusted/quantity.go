// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// longestQuantity is in bytes. Kubernetes itself writes fewer than thirty.
	longestQuantity = 64
	// longestExponent is in digits. A longer one means zero, or more than any real amount.
	longestExponent = 3
)

// Quantity parses a Kubernetes quantity: 4, 250m, 16Gi, 1e3. With twelve bytes, 1e-999999999,
// Kubernetes' own parser computes a number of a billion digits, for minutes and without a way to
// stop it. Such a text, and one longer than 64 bytes, is an error. The schemas of quantity fields
// in an API have an equivalent pattern (hack/crdgen), because decoding an object parses them before
// any check.
func Quantity(text string) (resource.Quantity, error) {
	if len(text) > longestQuantity {
		return resource.Quantity{}, &LimitError{What: "bytes", Most: longestQuantity}
	}
	if at := strings.LastIndexAny(text, "eE"); at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > longestExponent {
		return resource.Quantity{}, &LimitError{What: "digits in its exponent", Most: longestExponent}
	}
	return resource.ParseQuantity(text)
}
