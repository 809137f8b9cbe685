// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package argocd

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

func member(labels map[string]string) *clusterv1beta1.MemberCluster {
	return &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: "m1", Labels: labels}}
}

func TestDesiredSecret_HasTheFormatOfArgoCD(t *testing.T) {
	r := &Reconciler{Namespace: "argocd", HubURL: "https://hub:6443/", HubCA: []byte("pem")}
	secret, err := r.desiredSecret(member(map[string]string{
		"stage": "prod", "fleetgate.io/argocd": "true", "argocd.argoproj.io/secret-type": "repository", "app.kubernetes.io/managed-by": "x",
	}), "token")
	if err != nil {
		t.Fatal(err)
	}
	wantLabels := map[string]string{
		"stage": "prod", "argocd.argoproj.io/secret-type": "cluster", "app.kubernetes.io/managed-by": "fleetgate", "fleetgate.io/member": "m1",
	}
	if diff := cmp.Diff(wantLabels, secret.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if got, want := string(secret.Data["server"]), "https://hub:6443/apis/cluster.core.oam.dev/v1alpha1/clustergateways/m1/proxy"; got != want {
		t.Errorf("server is %s, want %s", got, want)
	}
	if got := string(secret.Data["name"]); got != "m1" {
		t.Errorf("name is %s", got)
	}
	var config map[string]any
	if err := json.Unmarshal(secret.Data["config"], &config); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"bearerToken": "token", "tlsClientConfig": map[string]any{"insecure": false, "caData": base64.StdEncoding.EncodeToString([]byte("pem"))}}
	if diff := cmp.Diff(want, config); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestDesiredRules_AllowNothingWithoutMembers(t *testing.T) {
	if rules := desiredRules(nil); rules != nil {
		t.Errorf("no member is labelled, and the rules are %+v", rules)
	}
	if rules := desiredRules([]string{"m1"}); len(rules) != 1 || len(rules[0].ResourceNames) != 1 || rules[0].Resources[0] != "clustergateways/proxy" {
		t.Errorf("rules are %+v", rules)
	}
}

func TestTokenIn_ReturnsTheTokenUntilItIsDue(t *testing.T) {
	issued := time.Unix(1_800_000_000, 0)
	token := func(uid string) string {
		payload := fmt.Sprintf(`{"sub":"s","iat":%d,"exp":%d,"kubernetes.io":{"serviceaccount":{"uid":%q}}}`, issued.Unix(), issued.Add(time.Hour).Unix(), uid)
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".c2ln"
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{UID: "u1"}}
	tests := map[string]struct {
		config string
		good   bool
	}{
		"good":                     {`{"bearerToken":"` + token("u1") + `"}`, true},
		"of a re-created account":  {`{"bearerToken":"` + token("u0") + `"}`, false},
		"not a token":              {`{"bearerToken":"abc"}`, false},
		"no configuration":         {``, false},
		"an invalid configuration": {`[1]`, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, due := tokenIn(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"config": []byte(tt.config)}}, account)
			if (got != "") != tt.good || due.IsZero() == tt.good {
				t.Errorf("token kept: %v, due %s", got != "", due)
			}
			if life := due.Sub(issued); tt.good && (life < 45*time.Minute || life > 51*time.Minute) {
				t.Errorf("due after %s of an hour", life)
			}
		})
	}
}
