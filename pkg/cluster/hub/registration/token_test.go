// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
)

func TestLifeOf(t *testing.T) {
	created := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	ttl := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	tests := map[string]struct {
		ttl         *metav1.Duration
		age         time.Duration
		over        bool
		seconds     int64
		requestable bool
	}{
		"null is infinite":                     {nil, time.Hour, false, 0, false},
		"zero is infinite":                     {ttl(0), time.Hour, false, 0, false},
		"negative is infinite":                 {ttl(-time.Hour), 2 * time.Hour, false, 0, false},
		"remaining lifetime is requested":      {ttl(time.Hour), 10 * time.Minute, false, 3000, true},
		"parts of a second count":              {ttl(time.Hour), time.Millisecond, false, 3600, true},
		"minimum of the API server":            {ttl(5 * time.Second), 0, false, 600, true},
		"beyond the maximum of the API server": {ttl(200 * 365 * 24 * time.Hour), 0, false, 200 * 365 * 24 * 3600, false},
		"expired":                              {ttl(time.Hour), time.Hour, true, 600, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			token := &registrationv1alpha1.ClusterRegistrationToken{
				ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)},
				Spec:       registrationv1alpha1.ClusterRegistrationTokenSpec{TTL: tc.ttl},
			}
			life := lifeOf(token, created.Add(tc.age))
			if life.over() != tc.over {
				t.Errorf("over: got %v, want %v", life.over(), tc.over)
			}
			seconds, ok := requestSeconds(life)
			if seconds != tc.seconds || ok != tc.requestable {
				t.Errorf("request: got %d, %v, want %d, %v", seconds, ok, tc.seconds, tc.requestable)
			}
			status := desiredTokenStatus(token, Defaults{}, life, issuedValues)
			if (status.Expires == nil) != life.infinite {
				t.Errorf("status.expires: got %v for an infinite life: %v", status.Expires, life.infinite)
			}
		})
	}
}
