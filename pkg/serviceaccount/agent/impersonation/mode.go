// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package impersonation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
)

// A Mode is by which verbs the gateway's account acts as others on a member. Its text is
// what the member's property says.
type Mode string

const (
	// Constrained are those of KEP-5284: identity and request are allowed apart, and with
	// them nobody acts as a node, as an account of the member or as system:masters,
	// whatever the role says. API servers have them from Kubernetes 1.36 on.
	Constrained Mode = "constrained"
	// Plain is the verb impersonate, for API servers that know no other.
	Plain Mode = "plain"

	legacyVerb   = "impersonate"
	identityVerb = "impersonate:user-info"
	actionPrefix = "impersonate-on:user-info:"

	// canary is a user whom the account may act as with the constrained verbs only, in
	// either mode: if it can, the API server knows them. Nothing else tells.
	canary = "fleetgate:impersonation-probe"

	// askAgain is how old an answer may be: the API server may be exchanged for one of
	// another version, or with other feature gates.
	askAgain = time.Minute
	// lookAgain is how often the role is looked after though nobody asks for a grant.
	lookAgain = 10 * time.Minute
	// probeTokenSeconds is the shortest life of a token that API servers grant.
	probeTokenSeconds = 600
)

// attributes are what the member's authorizer is asked about one name.
func (m Mode) attributes(resource, name string) *authorizationv1.ResourceAttributes {
	if m == Constrained {
		return &authorizationv1.ResourceAttributes{Verb: identityVerb, Group: authenticationv1.GroupName, Resource: resource, Name: name}
	}
	return &authorizationv1.ResourceAttributes{Verb: legacyVerb, Resource: resource, Name: name}
}

// rules let act as the users and groups, and as nobody else. There is no rule without
// names: it would allow them all.
func (m Mode) rules(users, groups []string) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	add := func(resource string, names []string) {
		if len(names) == 0 {
			return
		}
		of := m.attributes(resource, "")
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{of.Group}, Resources: []string{resource}, Verbs: []string{of.Verb}, ResourceNames: names})
	}
	add("users", users)
	add("groups", groups)
	if m == Constrained && len(rules) > 0 {
		rules = append(rules, actionRules()...)
	}
	return append(rules, probeRules()...)
}

// actionRules let whatever those users and groups may do be done as them. Which of it
// each may is asked of the member's own rules afterwards.
func actionRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: actionVerbs("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")},
		{NonResourceURLs: []string{"*"}, Verbs: actionVerbs("get", "head", "options", "post", "put", "patch", "delete")},
	}
}

func actionVerbs(verbs ...string) []string {
	for i, verb := range verbs {
		verbs[i] = actionPrefix + verb
	}
	return verbs
}

func probeRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"users"}, Verbs: []string{identityVerb}, ResourceNames: []string{canary}},
		{APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"selfsubjectreviews"}, Verbs: []string{actionPrefix + "create"}},
	}
}

// modeOf is the mode in which a role was written, or empty if it lets act as nobody.
func modeOf(rules []rbacv1.PolicyRule) Mode {
	verbs := map[string]bool{}
	for _, rule := range rules {
		if !slices.Equal(rule.ResourceNames, []string{canary}) {
			for _, verb := range rule.Verbs {
				verbs[verb] = true
			}
		}
	}
	switch {
	case verbs[legacyVerb]:
		return Plain
	case verbs[identityVerb]:
		return Constrained
	}
	return ""
}

// Mode returns how the gateway's account acts as others, or nothing while that is not
// known.
func (g *Grants) Mode() Mode {
	mode, _ := g.told.Load().(Mode)
	return mode
}

// Run keeps the role in the mode that the member's API server has, also while nobody asks
// for a grant: what was granted in another one, by an agent of an earlier version too, is
// written anew. It returns when the context ends.
func (g *Grants) Run(ctx context.Context) {
	wait.JitterUntilWithContext(ctx, func(ctx context.Context) {
		if _, err := g.write(ctx, nil); err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Info("Could not look after what the gateway may impersonate; it is tried again", "error", err.Error(), "after", lookAgain)
		}
	}, lookAgain, 0.2, true)
}

// settle finds out in which mode the role is to be, if the answer is old. Call it with
// the lock, when the binding is there. If nothing can be found out it stays as it is.
func (g *Grants) settle(ctx context.Context) (Mode, error) {
	if g.Mode() != "" && time.Since(g.asked) < askAgain {
		return g.Mode(), nil
	}
	var written Mode
	err := retry.OnError(overtaken(), isOvertaken, func() (err error) {
		written, err = g.prepareRole(ctx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("preparing ClusterRole %s: %w", g.roleName(), err)
	}
	knows, err := g.probe(ctx)
	if apierrors.IsNotFound(err) { // There is no account yet that could act as anybody.
		return cmp.Or(g.Mode(), written, Plain), nil
	}
	mode := Plain
	switch {
	case err != nil:
		mode = cmp.Or(written, Plain)
		log.FromContext(ctx).Info("Could not find out whether the member's API server constrains impersonation", "goesOn", mode, "error", err.Error())
	case knows:
		mode, g.asked = Constrained, time.Now()
	default:
		g.asked = time.Now()
	}
	if before := g.told.Swap(mode); before != mode {
		log.FromContext(ctx).Info("The gateway acts as others on this member with the verbs of this mode", "mode", mode)
	}
	return mode, nil
}

// probe acts as the canary with a token of the gateway's own account, which has no other
// right to.
func (g *Grants) probe(ctx context.Context) (knows bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, effectiveWithin)
	defer cancel()
	if err := g.waitAllowed(ctx, Constrained, "users", canary); err != nil {
		return false, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: g.AccountNamespace, Name: authenticationv1beta1.GatewayAccount}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](probeTokenSeconds)}}
	if err := g.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return false, fmt.Errorf("requesting a token of ServiceAccount %s/%s: %w", account.Namespace, account.Name, err)
	}
	config := rest.AnonymousClientConfig(g.Member)
	config.BearerToken = request.Status.Token
	config.Impersonate = rest.ImpersonationConfig{UserName: canary}
	asCanary, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return false, fmt.Errorf("reaching the member as the gateway's account: %w", err)
	}
	review, err := asCanary.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking the member who the gateway's account is while it acts as another: %w", err)
	}
	return review.Status.UserInfo.Username == canary, nil
}
