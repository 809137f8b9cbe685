// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"fleetgate.io/fleetgate/test/support/build"
)

func rule(group, verbs string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: strings.Fields(verbs)}
}

func roleRef(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

// grant is a rule for a user in a namespace, or in the whole cluster.
type grant struct {
	user, namespace string
	rule            rbacv1.PolicyRule
}

// create creates a role and a binding.
func (g grant) create(ctx context.Context, name string) error {
	subject := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: g.user}}
	objects := []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: build.Named(name), Rules: []rbacv1.PolicyRule{g.rule}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: build.Named(name), RoleRef: roleRef("ClusterRole", name), Subjects: subject},
	}
	if g.namespace != "" {
		objects = []client.Object{
			&rbacv1.Role{ObjectMeta: build.In(g.namespace, name), Rules: []rbacv1.PolicyRule{g.rule}},
			&rbacv1.RoleBinding{ObjectMeta: build.In(g.namespace, name), RoleRef: roleRef("Role", name), Subjects: subject},
		}
	}
	for _, object := range objects {
		if err := hub.Create(ctx, object); err != nil {
			return fmt.Errorf("granting: %w", err)
		}
	}
	return nil
}

// isOwnVerb is true for verbs that "*" in a namespace does not grant.
func isOwnVerb(verb string) bool {
	return slices.Contains([]string{"place", "render", "execute-as"}, verb)
}

// grants gives a user the wanted accesses: all of them, all but one, or some. Instead of the others, the
// user gets something similar.
func grants(r *rand.Rand, user, owned string, wanted []access) []grant {
	var all []grant
	mode, spared := r.IntN(5), r.IntN(len(wanted))
	for i, a := range wanted {
		switch {
		case mode < 2 && i == spared, mode == 2 && r.IntN(3) == 0:
			all = append(all, similar(r, user, owned, a)...)
		default:
			all = append(all, sufficient(r, user, a, mode == 3))
		}
	}
	return all
}

// sufficient grants an access, and more if it may be broad.
func sufficient(r *rand.Rand, user string, a access, broad bool) grant {
	g := grant{user: user, namespace: a.namespace, rule: rule(a.group, a.verb, a.resource)}
	forms := 2
	if broad {
		forms = 5
	}
	switch r.IntN(forms) {
	case 0:
		if a.name != "" {
			g.rule.ResourceNames = []string{a.name}
		}
	case 2:
		g.rule.APIGroups, g.rule.Resources = []string{"*"}, []string{"*"}
	case 3:
		if !isOwnVerb(a.verb) {
			g.rule.Verbs = []string{"*"}
		}
	case 4:
		g.namespace = ""
	}
	return g
}

// similar grants nothing, or what could be mistaken for the access. The owner of a namespace has all
// rights in it.
func similar(r *rand.Rand, user, owned string, a access) []grant {
	g := grant{user: user, namespace: a.namespace, rule: rule(a.group, a.verb, a.resource)}
	switch r.IntN(7) {
	case 0:
		return nil
	case 1:
		g.rule.Verbs = []string{"delete", "watch"}
	case 2:
		g.rule.ResourceNames = []string{"another"}
	case 3:
		g.rule.APIGroups = []string{"another.example.org"}
	case 4:
		g.rule.Resources = []string{"others"}
	default:
		g.namespace, g.rule = owned, rule("*", "*", "*")
		if g.namespace == a.namespace && !isOwnVerb(a.verb) {
			g.rule.Verbs = []string{"watch"}
		}
	}
	return []grant{g}
}

// awaitGrants returns when the hub's API server knows all grants that exist. It learns of the objects
// of a kind in their order.
func awaitGrants(ctx context.Context, name string) error {
	last := grant{user: name, rule: rule("", "get", "pods")}
	if err := last.create(ctx, name); err != nil {
		return err
	}
	last.namespace, last.rule = "default", rule("", "get", "services")
	if err := last.create(ctx, name); err != nil {
		return err
	}
	for _, attributes := range []authorizationv1.ResourceAttributes{{Verb: "get", Resource: "pods"}, {Verb: "get", Resource: "services", Namespace: "default"}} {
		if err := poll(ctx, func() (bool, error) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: name, ResourceAttributes: &attributes}}
			err := hub.Create(ctx, review)
			return review.Status.Allowed, err
		}); err != nil {
			return err
		}
	}
	return nil
}
