// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hash computes the hashes in names, labels, annotations and statuses. They are stored, so the
// results never change. Callers that need less than 64 characters take the first ones.
package hash

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Of is the hexadecimal SHA-256 of a text.
func Of[T ~string | ~[]byte](text T) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// JSON is the hash of a value's JSON.
func JSON(value any) (string, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return "", fmt.Errorf("hashing: %w", err)
	}
	return Of(text), nil
}
