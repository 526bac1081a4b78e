// The sections of the page, in their order. A section has an id, which is in the address, a letter for "g", and mount(view), which shows it in view.root
// and may give {update(params), escape(), leave()}.
import { clientKeys } from './clientkeys.js';
import { demo } from './demo.js';
import { logs } from './logs.js';
import { overview } from './overview.js';
import { playground } from './playground/playground.js';
import { providers } from './providers.js';
import { requests } from './requests.js';
import { sessions } from './sessions.js';
import { settings } from './settings.js';

const everywhere = [overview, requests, playground, providers, sessions, clientKeys, logs, settings];

export const sections = 'demo' in document.documentElement.dataset ? [demo, ...everywhere] : everywhere;
