// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/webhook/rules"
)

// maxQuestions is how many SubjectAccessReviews of one envelope are under way at
// once. An envelope has at most 50 entries with at most two questions each, and the
// API server waits five seconds.
const maxQuestions = 10

// envelopes keeps an envelope from being a way around RBAC: what is in it is not
// active on the hub, but the gateway makes it on members. So its author has to be
// allowed to make it on the hub.
type envelopes struct {
	resources rules.Resources
	// reviews asks for SubjectAccessReviews.
	reviews client.Writer
}

func (e envelopes) cluster(ctx context.Context, older **placementv1beta1.ClusterResourceEnvelope, newer *placementv1beta1.ClusterResourceEnvelope) (field.ErrorList, error) {
	var before map[string]placementv1beta1.EnvelopedObject
	if older != nil {
		before = (*older).Data
	}
	return e.check(ctx, "", before, newer.Data)
}

func (e envelopes) namespaced(ctx context.Context, older **placementv1beta1.ResourceEnvelope, newer *placementv1beta1.ResourceEnvelope) (field.ErrorList, error) {
	var before map[string]placementv1beta1.EnvelopedObject
	if older != nil {
		before = (*older).Data
	}
	return e.check(ctx, newer.Namespace, before, newer.Data)
}

func (e envelopes) check(ctx context.Context, namespace string, before, after map[string]placementv1beta1.EnvelopedObject) (field.ErrorList, error) {
	request, err := admission.RequestFromContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("finding out who writes an envelope: %w", err)
	}
	problems, needed, err := rules.ValidateEnvelope(namespace, after, rules.ChangedEntries(before, after), e.resources)
	if err != nil {
		return nil, err
	}
	refused, err := e.refused(ctx, request.UserInfo, needed)
	return append(problems, refused...), err
}

// refused returns an error for each access that the user has not, in the order of
// the entries.
func (e envelopes) refused(ctx context.Context, user authenticationv1.UserInfo, needed []rules.Access) (field.ErrorList, error) {
	allowed := make([]bool, len(needed))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxQuestions)
	for i, access := range needed {
		group.Go(func() (err error) {
			allowed[i], err = e.may(ctx, user, access)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all field.ErrorList
	for i, access := range needed {
		if !allowed[i] {
			all = append(all, field.Forbidden(access.Path, fmt.Sprintf("user %q may not %s on the hub, and an envelope is no way around that", user.Username, access)))
		}
	}
	return all, nil
}

func (e envelopes) may(ctx context.Context, user authenticationv1.UserInfo, access rules.Access) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(user.Extra))
	for key, values := range user.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: access.Verb, Group: access.Group, Resource: access.Resource, Namespace: access.Namespace, Name: access.Name,
		},
	}}
	if err := e.reviews.Create(ctx, review); err != nil {
		return false, fmt.Errorf("asking the hub whether %q may %s: %w", user.Username, access, err)
	}
	return review.Status.Allowed, nil
}

// resourcesOf asks the hub's own discovery. A kind that the hub serves in another
// version only is still that kind: a member may serve both.
func resourcesOf(mapper meta.RESTMapper) rules.Resources {
	return func(kind schema.GroupVersionKind) (rules.Resource, bool, error) {
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			mapping, err = mapper.RESTMapping(kind.GroupKind())
		}
		if meta.IsNoMatchError(err) {
			return rules.Resource{}, false, nil
		}
		if err != nil {
			return rules.Resource{}, false, err
		}
		return rules.Resource{Name: mapping.Resource.Resource, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}, true, nil
	}
}
