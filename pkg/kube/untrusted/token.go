// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"encoding/base64"
	"errors"
	"strings"
)

// Token are the limits of a token, which must fit into a request header.
var Token = Limits{Bytes: 32 << 10, Values: 1000, Depth: 20}

// ErrNoJWT is returned for a token that is no JWT. Its text never contains the token.
var ErrNoJWT = errors.New("the token is no JWT")

// Claims decodes the claims of a JWT (RFC 7519) into fields for encoding/json. It does not verify
// the token; the server that accepts the token does that. No error quotes the token.
func Claims(token string, into any) error {
	parts := strings.Split(token, ".")
	const header, payload, signature = 0, 1, 2
	if len(parts) != signature+1 || parts[header] == "" || len(token) > Token.Bytes {
		return ErrNoJWT
	}
	claims, err := base64.RawURLEncoding.DecodeString(parts[payload])
	if err != nil {
		return ErrNoJWT
	}
	if err := UnmarshalJSON(claims, Token, into); err != nil {
		return ErrNoJWT
	}
	return nil
}
