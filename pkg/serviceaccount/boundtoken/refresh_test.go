// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundtoken

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

func TestRefreshAt_StaysWithinItsBand(t *testing.T) {
	issued := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	tests := map[string]struct {
		life   time.Duration
		jitter float64
		want   time.Duration
	}{
		"earliest":         {life: 100 * time.Minute, jitter: 0, want: 75 * time.Minute},
		"middle":           {life: 100 * time.Minute, jitter: 0.5, want: 80 * time.Minute},
		"shortened by API": {life: 10 * time.Minute, jitter: 0.5, want: 8 * time.Minute},
		"no life at all":   {life: 0, jitter: 0.3, want: 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := RefreshAt(issued, issued.Add(tt.life), tt.jitter).Sub(issued).Round(time.Millisecond)
			if got != tt.want {
				t.Errorf("refresh after %s, want %s", got, tt.want)
			}
		})
	}
}

func TestJitter_IsStableAndBounded(t *testing.T) {
	issued := time.Unix(1_800_000_000, 0)
	seen := map[float64]bool{}
	for _, account := range []types.UID{"a", "b", "c", "d", ""} {
		jitter := Jitter(account, issued)
		if again := Jitter(account, issued); again != jitter {
			t.Errorf("jitter of %q changed from %v to %v", account, jitter, again)
		}
		if jitter < 0 || jitter >= 1 {
			t.Errorf("jitter %v of %q is outside [0, 1)", jitter, account)
		}
		seen[jitter] = true
	}
	if len(seen) != 5 {
		t.Errorf("5 accounts share jitters: %v", seen)
	}
}

func TestParseClaims(t *testing.T) {
	token := func(payload string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	const good = `{"sub":"system:serviceaccount:ns:name","iat":1800000000,"exp":1800003600,"kubernetes.io":{"serviceaccount":{"uid":"u1"}}}`

	claims, err := ParseClaims(token(good))
	if err != nil {
		t.Fatal(err)
	}
	want := Claims{Subject: "system:serviceaccount:ns:name", Account: "u1", Issued: time.Unix(1800000000, 0), Expires: time.Unix(1800003600, 0)}
	if diff := cmp.Diff(want, claims); diff != "" {
		t.Errorf("claims differ (-want +got):\n%s", diff)
	}

	for name, bad := range map[string]string{
		"empty":           "",
		"two parts":       "a.b",
		"not base64":      "a.%.c",
		"not JSON":        token("x"),
		"no times":        token(`{"sub":"s"}`),
		"expires earlier": token(`{"iat":10,"exp":5}`),
		"too long":        token(good) + strings.Repeat("a", untrusted.Token.Bytes),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseClaims(bad); !errors.Is(err, ErrToken) {
				t.Errorf("got error %v, want ErrToken", err)
			}
		})
	}
}

func FuzzParseClaims(f *testing.F) {
	f.Add("a.b.c")
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := ParseClaims(token)
		if err == nil && !claims.Expires.After(claims.Issued) {
			t.Errorf("accepted a token that expires before it is issued: %+v", claims)
		}
	})
}
