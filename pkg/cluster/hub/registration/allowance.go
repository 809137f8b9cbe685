// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	registrationv1alpha1 "fleetgate.io/fleetgate/pkg/apis/registration/v1alpha1"
	"fleetgate.io/fleetgate/pkg/controller/refusal"
)

// Defaults are the permissions of registration tokens without annotations. The zero value is what the
// public documents of the API specify.
type Defaults struct {
	// Strict forbids labels from agents, and requires approval of each cluster.
	Strict bool
	// ApproveInfinite approves clusters that register with a token without expiry. It excludes Strict.
	ApproveInfinite bool
}

// allowance is what a registration token permits.
type allowance struct {
	// approved clusters are used at once; others wait for an approval.
	approved bool
	// labels are the keys that agents can set; one can end with *.
	labels []string
	// cluster is the only Cluster that the token is for; empty means any.
	cluster string
	// uses is the number of keys that can register; zero means any number.
	uses int
	// token is the object that records the uses.
	token *registrationv1alpha1.ClusterRegistrationToken
}

// allowanceOf reads the annotations of a token. An invalid token admits no cluster.
func allowanceOf(token *registrationv1alpha1.ClusterRegistrationToken, defaults Defaults) (allowance, *refusal.Refusal) {
	_, infinite := registrationv1alpha1.Lifetime(token.Spec.TTL)
	t := allowance{
		approved: !defaults.Strict && (!infinite || defaults.ApproveInfinite),
		cluster:  token.Annotations[registrationv1alpha1.AnnotationForCluster],
		token:    token,
	}
	if approval, ok := token.Annotations[registrationv1alpha1.AnnotationApproval]; ok {
		t.approved = approval == registrationv1alpha1.ApprovalAuto
	}
	allowed, ok := token.Annotations[registrationv1alpha1.AnnotationAllowedLabels]
	if !ok && !defaults.Strict {
		allowed = registrationv1alpha1.DefaultAllowedLabels
	}
	for key := range strings.SplitSeq(allowed, ",") {
		if key = strings.TrimSpace(key); key != "" {
			t.labels = append(t.labels, key)
		}
	}
	if t.cluster != "" {
		t.uses = 1
	}
	if uses, ok := token.Annotations[registrationv1alpha1.AnnotationUses]; ok {
		n, err := strconv.Atoi(uses)
		if err != nil || n < 1 || n > registrationv1alpha1.MaxUses {
			return t, refusal.New(registrationv1alpha1.RegistrationReasonTokenInvalid,
				"annotation %s of ClusterRegistrationToken %q is no whole number from 1 to %d: correct it, or take it off to let any number of clusters register",
				registrationv1alpha1.AnnotationUses, token.Name, registrationv1alpha1.MaxUses)
		}
		t.uses = n
	}
	return t, nil
}

// allows reports whether an agent can set the label. It can always set the name of its pod.
func (t allowance) allows(key string) bool {
	return key == registrationv1alpha1.LabelCreatedByAgentPod || slices.ContainsFunc(t.labels, func(allowed string) bool {
		prefix, isPrefix := strings.CutSuffix(allowed, "*")
		if isPrefix && prefix == "" {
			return !registrationv1alpha1.IsProviderLabel(key)
		}
		return key == allowed || isPrefix && strings.HasPrefix(key, prefix)
	})
}

// labelsOf are the allowed labels of a request.
func (t allowance) labelsOf(request *registrationv1alpha1.ClusterRegistration) map[string]string {
	labels := maps.Clone(request.Spec.ClusterLabels)
	maps.DeleteFunc(labels, func(key, _ string) bool { return !t.allows(key) })
	return sanitizeLabels(labels)
}

// usedBy are the keys that registered with a token of limited uses.
func usedBy(token *registrationv1alpha1.ClusterRegistrationToken) []string {
	return strings.FieldsFunc(token.Annotations[registrationv1alpha1.AnnotationUsedBy], func(c rune) bool { return c == ',' })
}

func (t allowance) reachedUseLimit() bool { return t.uses > 0 && len(usedBy(t.token)) >= t.uses }

// useLimitReached is the message for the agent that registers and for the user who created the token,
// because only that user can notice that the token leaked.
func useLimitReached(t allowance) string {
	return fmt.Sprintf("ClusterRegistrationToken %q has reached its use limit, %d of %d: give the agent the values of a new token; "+
		"annotation %s of the token names the Clusters that used it: if one of them is not yours, delete it and find out who has your tokens",
		t.token.Name, len(usedBy(t.token)), t.uses, registrationv1alpha1.AnnotationUsedBy)
}
