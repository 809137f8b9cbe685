// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package untrusted

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestClaims_ReadsOnlyTheClaims(t *testing.T) {
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
	}
	for name, tc := range map[string]struct {
		token string
		want  int64
	}{
		"a JWT":                 {jwt(`{"exp": 1800000000, "sub": "x"}`), 1_800_000_000},
		"without a header":      {strings.TrimPrefix(jwt(`{"exp": 1}`), "e30"), 0},
		"a text for a number":   {jwt(`{"exp": "soon"}`), 0},
		"a claim twice":         {jwt(`{"exp": 1, "exp": 2}`), 0},
		"more than a token has": {jwt(`{"exp": 1, "x": "` + strings.Repeat("x", Token.Bytes) + `"}`), 0},
		"not JSON":              {"e30.bm9uZQ.c2ln", 0},
		"not base64":            {"e30.?.c", 0},
		"of another form":       {"opaque", 0},
		"nothing":               {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			var claims struct {
				Expires int64 `json:"exp"`
			}
			err := Claims(tc.token, &claims)
			if (err == nil) != (tc.want != 0) || err == nil && claims.Expires != tc.want {
				t.Errorf("claims %+v, error %v, want %d", claims, err, tc.want)
			}
			if err != nil && len(err.Error()) > 100 {
				t.Errorf("the error is as long as a token: %v", err)
			}
		})
	}
}
