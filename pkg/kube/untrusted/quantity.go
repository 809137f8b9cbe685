// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// longestQuantity is in bytes. What Kubernetes writes itself has fewer than thirty.
	longestQuantity = 64
	// longestExponent is in digits. Whatever has more is nothing, or more than there can be.
	longestExponent = 3
)

// Quantity reads an amount as Kubernetes writes them: 4, 250m, 16Gi, 1e3. Twelve bytes,
// 1e-999999999, have Kubernetes' own reader compute a number of a billion digits, for
// minutes that nobody can end: that, and what is longer than 64 bytes, is an error. The
// fields of an API that are quantities have a pattern of the same meaning in their
// schemas (hack/crdgen), since who decodes an object has read them before anybody looks.
func Quantity(text string) (resource.Quantity, error) {
	if len(text) > longestQuantity {
		return resource.Quantity{}, &LimitError{What: "bytes", Most: longestQuantity}
	}
	if at := strings.LastIndexAny(text, "eE"); at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > longestExponent {
		return resource.Quantity{}, &LimitError{What: "digits in its exponent", Most: longestExponent}
	}
	return resource.ParseQuantity(text)
}
