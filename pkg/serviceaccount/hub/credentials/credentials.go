// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	authenticationv1beta1 "fleetgate.io/fleetgate/pkg/apis/authentication/v1beta1"
	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
)

// A Credential authenticates the gateway on a member.
type Credential struct {
	// Token is a bearer token. It must never appear in a log, an error or a key.
	Token string
	// CA verifies the member's API server (PEM).
	CA []byte
}

// ErrNoCredential is returned if the member's agent has not reported a token of the gateway's
// account yet.
var ErrNoCredential = errors.New("no token of the gateway's account on this member yet")

// Credentials stores the gateway's current credential for every member. It watches only Secrets of
// the gateway's account. Deleting or emptying such a Secret withdraws the credential.
type Credentials struct {
	// Changed, if set before Start, is called for each Secret: whether it contains a credential of
	// the member, its resourceVersion, and whether it existed at the start. It must not block.
	Changed func(member string, present bool, resourceVersion string, initial bool)

	client kubernetes.Interface

	// lock guards byMember.
	lock     sync.RWMutex
	byMember map[string]Credential
	synced   chan struct{}
}

// NewCredentials returns an empty store; Start fills it.
func NewCredentials(client kubernetes.Interface) *Credentials {
	return &Credentials{client: client, byMember: map[string]Credential{}, synced: make(chan struct{})}
}

// NeedLeaderElection is false: every replica proxies requests.
func (c *Credentials) NeedLeaderElection() bool { return false }

// Start watches the Secrets until the context ends.
func (c *Credentials) Start(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0, informers.WithTweakListOptions(func(options *metav1.ListOptions) {
		options.LabelSelector = authenticationv1beta1.LabelManagedServiceAccount + "=" + authenticationv1beta1.LabelManagedServiceAccountValue
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", authenticationv1beta1.GatewayAccount).String()
	}))
	informer := factory.Core().V1().Secrets().Informer()
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    c.store,
		UpdateFunc: func(_, current any) { c.store(current, false) },
		DeleteFunc: c.forget,
	})
	if err != nil {
		return fmt.Errorf("watching the gateway's credentials: %w", err)
	}
	factory.StartWithContext(ctx)
	defer factory.Shutdown()
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		close(c.synced)
	}
	<-ctx.Done()
	return nil
}

// Synced is closed when all credentials that existed at the start are known.
func (c *Credentials) Synced() <-chan struct{} { return c.synced }

// Credential returns the current credential for a member, or ErrNoCredential.
func (c *Credentials) Credential(member string) (Credential, error) {
	c.lock.RLock()
	defer c.lock.RUnlock()
	credential, ok := c.byMember[member]
	if !ok {
		return Credential{}, fmt.Errorf("member %q: %w (see ManagedServiceAccount %s/%s)", member, ErrNoCredential,
			clusterv1beta1.MemberNamespace(member), authenticationv1beta1.GatewayAccount)
	}
	return credential, nil
}

func (c *Credentials) store(object any, initial bool) {
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return
	}
	member, ok := clusterv1beta1.MemberOfNamespace(secret.Namespace)
	if !ok {
		return
	}
	credential := Credential{Token: string(secret.Data[authenticationv1beta1.SecretKeyToken]), CA: secret.Data[authenticationv1beta1.SecretKeyCA]}
	present := credential.Token != "" && len(credential.CA) > 0
	c.set(member, credential, present)
	c.notify(member, present, secret.ResourceVersion, initial)
}

func (c *Credentials) forget(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	secret, ok := object.(*corev1.Secret)
	if !ok {
		return
	}
	if member, ok := clusterv1beta1.MemberOfNamespace(secret.Namespace); ok {
		c.set(member, Credential{}, false)
		c.notify(member, false, secret.ResourceVersion, false)
	}
}

func (c *Credentials) set(member string, credential Credential, present bool) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if present {
		c.byMember[member] = credential
	} else {
		delete(c.byMember, member)
	}
}

func (c *Credentials) notify(member string, present bool, resourceVersion string, initial bool) {
	if c.Changed != nil {
		c.Changed(member, present, resourceVersion, initial)
	}
}
