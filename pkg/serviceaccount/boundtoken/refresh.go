// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package boundtoken

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

const (
	// refreshFraction is the fraction of a token's lifetime after which it is refreshed.
	refreshFraction = 0.80
	// refreshJitter is the maximum deviation from it, in either direction.
	refreshJitter = 0.05
)

// RefreshAt returns when to refresh a token: at 80 % of its lifetime, plus or minus 5 %. jitter is
// in [0, 1) and constant for one token.
func RefreshAt(issued, expires time.Time, jitter float64) time.Time {
	fraction := refreshFraction + refreshJitter*(2*jitter-1)
	return issued.Add(time.Duration(float64(expires.Sub(issued)) * fraction))
}

// Jitter returns a number in [0, 1) for an account and an issue time. It is stable, so that a
// restarted agent computes the same refresh time.
func Jitter(account types.UID, issued time.Time) float64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s/%d", account, issued.Unix())
	return float64(hash.Sum64()>>11) / (1 << 53)
}

// Claims are the claims of a service account token. They are not verified here; the API server does
// that.
type Claims struct {
	// Subject is the user name, system:serviceaccount:<namespace>:<name>.
	Subject string
	// Account is the UID of the ServiceAccount that the token was issued for.
	Account types.UID
	// Issued and Expires bound the lifetime.
	Issued, Expires time.Time
}

// ErrToken is returned if the text is not a bound service account token. It never contains the
// token.
var ErrToken = errors.New("not a bound service account token")

// ParseClaims reads the claims of a token that an API server issued by
// TokenRequest, or returns ErrToken.
func ParseClaims(token string) (Claims, error) {
	var raw struct {
		Subject    string  `json:"sub"`
		Issued     float64 `json:"iat"`
		Expires    float64 `json:"exp"`
		Kubernetes struct {
			ServiceAccount struct {
				UID types.UID `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := untrusted.Claims(token, &raw); err != nil || raw.Issued <= 0 || raw.Expires <= raw.Issued {
		return Claims{}, ErrToken
	}
	return Claims{
		Subject: raw.Subject,
		Account: raw.Kubernetes.ServiceAccount.UID,
		Issued:  time.Unix(int64(raw.Issued), 0),
		Expires: time.Unix(int64(raw.Expires), 0),
	}, nil
}
